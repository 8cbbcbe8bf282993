// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/parallel/communicator.hpp>
#include <infty/parallel/level_sums.hpp>
#include <infty/parallel/rank_sums.hpp>
#include <infty/parallel/shard_tree.hpp>

// The sum of a vector a shard over all shards, as one binary tree says: ((0 + 1) + (2 + 3)) + ...
// Every sum is of two nodes of the tree, whoever computes it, so that it has the same bits on any
// number of ranks.

namespace infty {

/// How vectors are summed over ranks.
enum class Reduction {
  tree,  ///< `tree_sum`: the same bits on any number of ranks
  fast,  ///< `fast_sum`: as the communicator's engine likes it
};

namespace detail {

/// Sums a vector a shard over all shards on all ranks, slice by slice: a sum of elements is that of
/// these elements alone, so that slices change no bit. Its memory stays for the next sum.
template <class T>
class ShardSum {
 public:
  /// Begins the sum of vectors of `size` elements. @throws infty::ValueError as `shards_of`
  template <Communicator C>
  void begin(C& ranks, Index shards, std::size_t size, Reduction reduction) {
    const ShardRange own = shards_of(shards, ranks.size(), ranks.rank());
    shards_ = shards;
    size_ = size;
    fast_ = reduction == Reduction::fast;
    halves_ = std::has_single_bit(static_cast<unsigned>(ranks.size()));
    levels_.begin(fast_ || halves_ ? std::vector{own} : nodes_of(shards, own), size);
  }

  /// Returns where the vector of this rank's next shard is to be written; what stands there is old.
  std::span<T> next() { return levels_.next(); }

  /// Adds a slice of that vector, which is written by now, to those before it: each once a shard.
  void add(Slice slice) { levels_.add(slice); }

  /// Makes a slice of the sum of this rank's shards, all of which have been added there, that of
  /// all ranks, which do so together, slice by slice in the same order.
  template <Communicator C>
  void reduce(C& ranks, Slice slice) {
    const std::span<T> first = slice.of(levels_.sum(0));
    if (fast_) return ranks.all_reduce(first);
    if (halves_) return sum_by_halves<T>(ranks, first, received_);
    std::vector<std::span<T>> nodes;
    for (std::size_t n = 0; n < levels_.nodes().size(); ++n)
      nodes.push_back(slice.of(levels_.sum(n)));
    sum_by_parts<T>(ranks, shards_, nodes, parts_);
  }

  /// All of the elements.
  Slice all() const { return {0, size_}; }
  /// Returns the sum, when all slices have been reduced.
  std::span<const T> sum() { return levels_.sum(0); }
  /// Gives its vector away.
  std::vector<T> take() { return levels_.take(); }

 private:
  Index shards_ = 0;
  std::size_t size_ = 0;
  bool fast_ = false, halves_ = true;
  LevelSums<T> levels_;
  std::vector<T> received_;
  PartsMemory<T> parts_;
};

/// The sum over all shards of `make(shard, out)` in memory of its own.
template <class T, Communicator C, class Make>
std::vector<T> sum_over_shards(C& ranks, Index shards, Index size, Reduction reduction,
                               Make&& make) {
  ShardSum<T> sum;
  sum.begin(ranks, shards, static_cast<std::size_t>(size), reduction);
  const ShardRange own = shards_of(shards, ranks.size(), ranks.rank());
  for (Index shard = own.first; shard < own.last; ++shard) {
    make(shard, sum.next());
    sum.add(sum.all());
  }
  sum.reduce(ranks, sum.all());
  return sum.take();
}

}  // namespace detail

/// Computes the sum over all shards of `make(shard, out)`, which writes a vector of `size` elements
/// and is called for this rank's own shards, in their order; the sum is there on all ranks, with
/// the same bits whatever their number. Where that is a power of two each rank sends and receives
/// 2 (1 - 1 / ranks) vectors in 2 log2(ranks) messages; otherwise 2 (ranks - 1) messages, and a
/// vector more for each further node that its shards are made of.
/// @throws infty::ValueError as `shards_of`, and what `make` and the communicator throw
template <class T, Communicator C, class Make>
std::vector<T> tree_sum(C& ranks, Index shards, Index size, Make&& make) {
  require_at_least("tree_sum", "size", size, 0);
  return detail::sum_over_shards<T>(ranks, shards, size, Reduction::tree, std::forward<Make>(make));
}

/// Computes the same sum by the communicator's own `all_reduce`: this rank's shards are summed as
/// the tree says, and what ranks have as the engine likes it. Its last bits depend on the number of
/// ranks, and on the engine.
/// @throws as `tree_sum`
template <class T, Communicator C, class Make>
std::vector<T> fast_sum(C& ranks, Index shards, Index size, Make&& make) {
  require_at_least("fast_sum", "size", size, 0);
  return detail::sum_over_shards<T>(ranks, shards, size, Reduction::fast, std::forward<Make>(make));
}

}  // namespace infty
