// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// The constants of an `InfiniAttention`. P is the paper [Munkhdalai et al. 2024], L the most used
/// program, lucidrains/infini-transformer-pytorch.
struct InfiniConfig {
  /// N, tokens of a segment: so many are collected, and then written to the memory at once (P:
  /// 2048, from the published text's summaries; L: as long as each input).
  Index segment = 2048;
  /// Whether what the memory holds of a key already is taken off its value first, the delta rule
  /// (P has both, Eq. 4 and 5; L: off).
  bool delta = false;
  double rotary_base = 10000;  ///< of the positions within a segment (L); 0 for none
  double floor = 1e-10;        ///< least mass that a reading is divided by (L); P has none
  double gate = 0;             ///< β at first, 0 for half of each; L has 10, with its sign
  /// Whether sigmoid(β) weighs the local attention (L) and not what the memory reads (P, Eq. 6).
  bool gate_on_local = false;
  /// Whether the local attention is not weighed before there is a memory (L).
  bool ungated_first = false;
  bool bias = false;  ///< of the four maps (L: none)

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("InfiniConfig", "segment", segment, 1);
    require_sizes("InfiniConfig", {{"segment", segment}});
    if (rotary_base != 0)
      require_within("InfiniConfig", "rotary_base", rotary_base, least_divisor, largest_constant);
    require_within("InfiniConfig", "floor", floor, least_divisor, largest_constant);
    require_within("InfiniConfig", "gate", gate, -largest_constant, largest_constant);
  }
};

}  // namespace infty
