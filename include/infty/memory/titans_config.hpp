// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/math.hpp>

namespace infty {

/// The constants of a `TitansMemory`, a neural memory that learns while it reads
/// [Behrouz et al. 2025, "Titans: Learning to Memorize at Test Time"]. Those whose comment says
/// "the program" are lucidrains/titans-pytorch's, the most used one; the paper's own is not public.
struct TitansConfig {
  Index model_dim = 0;  ///< d; `WithMemory` and `Titans` set these three to the attention's
  Index heads = 0;      ///< H networks side by side, each with its own weights; in the paper 1
  Index head_dim = 0;   ///< D, width of a network's inputs and outputs
  Index depth = 2;      ///< layers of a network; 1 is a matrix [§3.1: L_M >= 1; the program: 2]
  Index hidden = 0;     ///< width between its layers; 0: 4 D, as in the program
  /// Vectors that are learned together, with one momentum and one decay; 1 is the paper's
  /// recurrence [§3.2].
  Index chunk = 1;
  /// Vectors after which the weights at which gradients are taken are renewed, a multiple of
  /// `chunk`: 1, with `chunk` 1, is the paper's recurrence, more are its mini-batches [§3.2, Eq.
  /// 16]; 0 is never, the program's default: gradients at the first weights throughout.
  Index weights_every = 1;
  /// Greatest step of a vector, which is this times a sigmoid [the program]. Steps of vectors that
  /// are learned at the same weights add up: see docs/memories.md.
  double max_rate = 1;
  /// Greatest length of what a chunk adds to a matrix, of its gradient by the matrix as one vector;
  /// what is longer is shortened to it [the program: `max_grad_norm`]. With any, weights grow no
  /// faster than their decay takes away, and steps that would swing further every time do not. 0 is
  /// none, as in the paper and by default in the program.
  double max_surprise = 0;
  bool momentum = true;  ///< surprise of the past goes on [§3.1, Eq. 9 and 10]; off: Eq. 8
  /// Keys, values and queries pass SiLU [§4.4]. Not in the program.
  bool silu = true;
  /// Keys and queries have length 1 [§4.4]: a step of a matrix is then never too long. Not in the
  /// program.
  bool unit = true;
  /// Taps of the causal convolutions of each channel behind the projections of keys, values and, in
  /// `Titans`, queries, in front of SiLU; 0 for none. The paper has them [§4.4] and prints no
  /// number; 4 is that of the recurrent models that it follows there. Not in the program.
  Index convolution = 0;

  /// Width between a network's layers.
  Index hidden_dim() const { return hidden > 0 ? hidden : 4 * head_dim; }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    constexpr const char* op = "TitansConfig";
    require_at_least(op, "model_dim", model_dim, 1);
    require_at_least(op, "heads", heads, 1);
    require_at_least(op, "head_dim", head_dim, 1);
    require_at_least(op, "depth", depth, 1);
    require_at_least(op, "hidden", hidden, 0);
    require_at_least(op, "chunk", chunk, 1);
    require_at_least(op, "weights_every", weights_every, 0);
    require_at_least(op, "convolution", convolution, 0);
    require_within(op, "max_rate", max_rate, least_divisor, largest_constant);
    if (max_surprise != 0)
      require_within(op, "max_surprise", max_surprise, least_divisor, largest_constant);
    require_sizes(op, {{"chunk", chunk}, {"model_dim", model_dim}});
    require_sizes(op, {{"head_dim", head_dim}, {"4", 4}});
    require_sizes(op, {{"heads", heads}, {"head_dim", head_dim}, {"model_dim", model_dim}});
    require_sizes(op, {{"depth", depth},
                       {"heads", heads},
                       {"hidden", hidden_dim()},
                       {"the greater of hidden and head_dim",
                        hidden_dim() > head_dim ? hidden_dim() : head_dim}});
    require_sizes(op, {{"weights_every", weights_every}});
    require_sizes(op, {{"heads", heads}, {"head_dim", head_dim}, {"convolution", convolution}});
    require_sizes(op, {{"model_dim", model_dim}, {"convolution", convolution}});
    require(weights_every % chunk == 0, op, "weights_every is ", weights_every, ", chunk is ",
            chunk, ": it must be a multiple of chunk, or 0");
  }
};

}  // namespace infty
