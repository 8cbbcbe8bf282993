// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/parallel/shard_tree.hpp>

namespace infty::detail {

/// Adds b to a, element by element.
template <class T>
void add_into(std::span<T> a, std::span<const T> b) {
  T* const to = a.data();
  const T* const from = b.data();
  const std::size_t n = a.size();
  for (std::size_t i = 0; i < n; ++i) to[i] = to[i] + from[i];
}

/// Elements [first, last) of a vector.
struct Slice {
  std::size_t first = 0, last = 0;

  std::size_t size() const { return last - first; }
  template <class T>
  std::span<T> of(std::span<T> values) const {
    return values.subspan(first, size());
  }
};

/// Vectors of a rank's shards, summed as the tree says: one vector for each node that the shards
/// are made of, and one for each level below it at most. Their memory stays for the next sum.
template <class T>
class LevelSums {
 public:
  /// Begins sums of vectors of `size` elements over the shards of these nodes, from left to right.
  void begin(std::vector<ShardRange> nodes, std::size_t size) {
    nodes_ = std::move(nodes);
    size_ = size;
    node_ = 0;
    next_ = nodes_.front().first;
    top_ = merges_ = 0;
  }

  /// The nodes.
  const std::vector<ShardRange>& nodes() const { return nodes_; }

  /// Returns where the vector of the next shard is to be written; what stands there is old.
  std::span<T> next() {
    if (next_ == nodes_[node_].last) ++node_;
    // Left sums wait on the levels above: one wherever the way down to the shard goes right.
    std::size_t depth = 0;
    merges_ = 0;
    for (ShardRange node = nodes_[node_]; node.count() > 1;) {
      const Index middle = middle_of(node);
      const bool right = next_ >= middle;
      node = right ? ShardRange{middle, node.last} : ShardRange{node.first, middle};
      depth += right ? 1 : 0;
      merges_ = right ? merges_ + 1 : 0;
    }
    ++next_;
    top_ = node_ + depth;
    if (levels_.size() <= top_) levels_.resize(top_ + 1);
    if (levels_[top_].size() < size_) levels_[top_].resize(size_);
    return level(top_);
  }

  /// Adds a slice of the vector that `next` has made room for, which is written by now, to those
  /// before it, as far as the tree says before the next shard. Each element once a shard.
  void add(Slice slice) {
    for (std::size_t k = 0; k < merges_; ++k)
      add_into<T>(slice.of(level(top_ - k - 1)), slice.of(level(top_ - k)));
  }

  /// Returns the sum of node n of `nodes`, when all of its shards have been added.
  std::span<T> sum(std::size_t n) { return level(n); }

  /// Gives the vector of the first node's sum away.
  std::vector<T> take() {
    levels_.front().resize(size_);
    return std::move(levels_.front());
  }

 private:
  std::span<T> level(std::size_t k) { return std::span<T>(levels_[k]).first(size_); }

  std::vector<ShardRange> nodes_;
  std::size_t size_ = 0, node_ = 0;     // of a vector; that of the next shard
  std::size_t top_ = 0, merges_ = 0;    // the last shard's level, and how many sums it ends
  Index next_ = 0;                      // shard
  std::vector<std::vector<T>> levels_;  // sums of nodes, then left sums and the shard
};

}  // namespace infty::detail
