// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/core/config.hpp>
#include <infty/signal/contraction_rule.hpp>

namespace infty {

/// What RidgeCache keeps and how much of it.
struct RidgeSettings {
  double penalty = 1;  ///< λ > 0
  Index samples = 0;   ///< of the contracted past, >= 1
  double tau = 0.75;   ///< share of [0, 1] that the past is contracted to, in (0, 1)
  /// What that share is where it changes from write to write, taken from a grid (`gridded_share`);
  /// tau then only says how a first write is held. Empty for tau.
  ContractionRule contraction = {};
  bool hold = false;  ///< vectors fewer than `held_points` stand at several places each
  /// Λ is found, the penalty raised until it is at most `most_lebesgue`, and what writes in a row
  /// can add up to as well.
  bool bounded = false;
  bool midpoints = false;  ///< of a first write of an odd number of vectors (`first_positions`)
  Index entries = 64;      ///< matrices for so many lengths are kept; the least recently used leave
  std::size_t bytes = std::size_t{256} << 20;  ///< and no more than this, but always the last one
};

}  // namespace infty
