// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// How a read of a `UniformMemory` sees the means that wait for their block to be full.
enum class Waiting {
  written,   ///< behind a copy of the signal, as if the block were full of them
  attended,  ///< by attention to them, beside the signal of the full blocks
  left_out,  ///< not at all
  /// In the attention beside this memory, as what stands in front of all that it holds: one softmax
  /// over them, its own vectors and the segment. By itself this memory leaves them out.
  short_term,
};

/// The constants of a `UniformMemory`: those of the signal, and the block. `power`, or
/// `contraction`, says how the past is contracted; 0 and none stand for a power of 1. A rule of
/// one's own is asked in means, of which there are ever fewer to so many vectors: it should depend
/// on the ratio of its two numbers alone.
template <class LongTerm>
struct UniformConfig : LongTerm {
  Index block = 16;  ///< P, vectors, or means of vectors, that are written together
  /// Share of [0, 1] that a block takes at the least: before one would take less, each of its P
  /// vectors becomes the mean of twice as many. In [0, 1); 0 stands for P / (2 N), at which a mean
  /// is half as wide as what one of N functions can tell from its neighbours.
  double least_share = 0;
  Waiting waiting = Waiting::written;  ///< how a read sees what waits for its block to be full

  /// The signal's constants: those that `stability` and `retention` are asked about, for writes of
  /// a block.
  LongTerm signal() const {
    LongTerm config = *this;
    if (!config.contraction && config.power == 0) config.power = 1;
    return config;
  }

  /// `least_share`, with 0 resolved.
  double resolved_least_share() const {
    return least_share > 0 ? least_share
                           : static_cast<double>(block) / (2 * static_cast<double>(this->basis));
  }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    signal().validate();
    require_at_least("UniformConfig", "block", block, 1);
    require(math::is_finite(least_share) && least_share >= 0 && least_share < 1, "UniformConfig",
            "least_share is ", least_share, ": it must lie in [0, 1)");
    require(this->group == 1, "UniformConfig", "group is ", this->group,
            ": it must be 1, for vectors wait for their block");
    require(this->threshold == 0, "UniformConfig", "threshold is ", this->threshold,
            ": it must be 0, for all of the past is kept");
    require_sizes("UniformConfig", {{"block", block}, {"model_dim", this->model_dim}});
  }
};

}  // namespace infty
