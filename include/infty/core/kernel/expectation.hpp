// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

namespace infty {

/// Sizes of a read: B rows, Q queries, N basis functions, H heads of D.
struct ReadSize {
  Index batch, queries, basis, heads, head_dim;  ///< B, Q, N, H, D in this order
  /// Whether a kernel may leave out basis functions that are so far from a query that their share
  /// is lost in the rounding of the sum.
  bool skip_tails = true;
  bool adds = false;  ///< whether what is read is added to what is there
};

}  // namespace infty
