// SPDX-License-Identifier: MIT
#pragma once

namespace infty {

/// Where a key that lies ahead of the query stands for relative attention, which otherwise knows
/// of keys behind the query alone.
enum class AheadPositions {
  distance,  ///< at its distance, which is negative: r_(i - j) for every j
  /// Where the relative shift of Transformer-XL's program puts it: the first key ahead has no
  /// position term, the e-th has that of the next query at distance K + 1 - e, with K keys in all.
  shifted
};

/// What memory tokens see in attention, and whether they stay: what a decorator that has them ride
/// in front of a segment and behind it asks of all mixers inside.
struct TokenRules {
  /// Whether the tokens of a group, of those in front or of those behind, see each other both ways;
  /// if not, each sees those up to itself.
  bool both_ways = false;
  bool read_past = true;  ///< whether they see what attention holds of earlier segments
  bool held = false;      ///< whether attention holds them for later segments, as it holds words
  AheadPositions ahead = AheadPositions::distance;  ///< of keys ahead, where they see both ways

  /// Whether two are the same.
  bool operator==(const TokenRules&) const = default;
};

}  // namespace infty
