// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>

namespace infty {

/// Some of the shards, one behind the other.
struct ShardRange {
  Index first = 0;  ///< the first of them
  Index last = 0;   ///< the first behind them

  /// Returns how many these are.
  Index count() const { return last - first; }

  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

namespace detail {

/// Where a node of the tree is cut into its left and its right child: the left one is no smaller.
inline Index middle_of(ShardRange node) { return node.last - node.count() / 2; }

/// Adds the largest nodes below `node` that lie in `range` as a whole, from left to right.
inline void add_nodes(ShardRange node, ShardRange range, std::vector<ShardRange>& to) {
  if (node.last <= range.first || range.last <= node.first) return;
  if (range.first <= node.first && node.last <= range.last) {
    to.push_back(node);
    return;
  }
  const Index middle = middle_of(node);
  add_nodes({node.first, middle}, range, to);
  add_nodes({middle, node.last}, range, to);
}

}  // namespace detail

/// The shards of a rank: as many as any other's, or one more or less. Where the number of ranks is
/// a power of two they are one node of the tree of all shards, which is halved down to single ones,
/// the left half the larger.
/// @throws infty::ValueError unless 0 <= rank < ranks <= shards: each rank needs one
inline ShardRange shards_of(Index shards, int ranks, int rank) {
  require(ranks >= 1 && shards >= ranks, "shards_of", "there are ", shards, " shards for ", ranks,
          " ranks: each needs one");
  require(0 <= rank && rank < ranks, "shards_of", "rank is ", rank, ": it must lie in [0, ", ranks,
          ')');
  if (!std::has_single_bit(static_cast<unsigned>(ranks))) {
    // ⌊shards r / ranks⌋, whose product may be no Index.
    const auto first = [&](Index r) { return shards / ranks * r + shards % ranks * r / ranks; };
    return {first(rank), first(rank + 1)};
  }
  ShardRange node{0, shards};
  for (int half = ranks / 2; half > 0; half /= 2) {
    const Index middle = detail::middle_of(node);
    node = (rank & half) == 0 ? ShardRange{node.first, middle} : ShardRange{middle, node.last};
  }
  return node;
}

/// The nodes of the tree of all shards that a range is made of, the largest ones, from left to
/// right.
inline std::vector<ShardRange> nodes_of(Index shards, ShardRange range) {
  std::vector<ShardRange> nodes;
  detail::add_nodes({0, shards}, range, nodes);
  return nodes;
}

}  // namespace infty
