// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>

namespace infty {

/// Sizes of a layer's attention. Defaults are the sorting experiment's [Martins et al. 2022, §4.1].
struct AttentionSizes {
  Index model_dim = 300;  ///< d, width of the vectors that go through
  Index heads = 6;        ///< H, how many attend side by side
  Index head_dim = 50;    ///< D, width of a head's queries, keys and values

  /// H D, of all heads.
  Index inner() const { return heads * head_dim; }

  /// Checks all constants.
  /// @throws infty::ValueError unless all are >= 1, and their product at most `largest_size`
  void validate() const {
    require(model_dim >= 1 && heads >= 1 && head_dim >= 1, "AttentionSizes", "model_dim is ",
            model_dim, ", heads ", heads, ", head_dim ", head_dim, ": they must be >= 1");
    require_sizes("AttentionSizes",
                  {{"model_dim", model_dim}, {"heads", heads}, {"head_dim", head_dim}});
  }
};

}  // namespace infty
