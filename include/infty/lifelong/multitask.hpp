// SPDX-License-Identifier: MIT
#pragma once

#include <infty/lifelong/sequential.hpp>

namespace infty {

/// Learns all tasks at once, the stream being shuffled for it: MTL of the papers. No method of
/// lifelong learning, but the upper bound of all.
struct Multitask : Sequential {
  static constexpr bool shuffled = true;  ///< what it wants of the stream
};

}  // namespace infty
