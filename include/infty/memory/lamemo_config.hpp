// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>

namespace infty {

/// By what a vector of the past tells where a key to its right stands.
enum class LaMemoPositions {
  disentangled,  ///< the distance's absolute value, and a bias of the direction [Ji et al., Eq. 12]
  transformer_xl  ///< the signed distance, and one bias for both directions [Ji et al., Eq. 6]
};

/// Constants of a `LaMemo`, and the ablations of its paper: see docs/lamemo.md.
struct LaMemoConfig {
  /// Vectors that a row holds at most. 150 on WikiText-103, as long as a segment; 512 on enwik8 and
  /// text8 [Ji et al. 2022].
  Index capacity = 150;
  /// Whether the past reads what has come since. If not, it keeps what it has read, α = 1: "w/o
  /// look-ahead" [§4.5].
  bool look_ahead = true;
  /// Whether what the past had read is averaged in. If not, it is forgotten, α = 0: "w/o mem
  /// interp" [§4.5].
  bool interpolation = true;
  LaMemoPositions positions = LaMemoPositions::disentangled;  ///< [§3.3, §4.5]

  /// Whether the position scores to the right have a bias of their own.
  bool has_future_bias() const { return look_ahead && positions == LaMemoPositions::disentangled; }

  /// Checks all constants.
  /// @throws infty::ValueError unless capacity >= 0 and at most `largest_size`, and the past looks
  /// ahead or keeps what it has read
  void validate() const {
    require(capacity >= 0, "LaMemoConfig", "capacity is ", capacity, ": it must be >= 0");
    require_sizes("LaMemoConfig", {{"capacity", capacity}});
    require(look_ahead || interpolation, "LaMemoConfig",
            "look_ahead and interpolation are false: one must be true, or the past reads nothing");
  }
};

}  // namespace infty
