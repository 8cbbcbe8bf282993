// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/core/config.hpp>

namespace infty {

/// What is learned from and asked: a text and its answer.
struct Example {
  std::vector<Index> tokens;  ///< of the text, one at least
  std::vector<Index>
      labels;  ///< a class, or the first and the last token of a span: as a head says

  friend bool operator==(const Example&, const Example&) = default;
};

}  // namespace infty
