// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/parallel/communicator.hpp>
#include <infty/parallel/shard_tree.hpp>

// The sum of a vector a shard over all shards, as one binary tree says: ((0 + 1) + (2 + 3)) + ...
// Every sum is of two nodes of the tree, whoever computes it, so that it has the same bits on any
// number of ranks.

namespace infty {

namespace detail {

/// Adds b to a, element by element.
template <class T>
void add_into(std::span<T> a, std::span<const T> b) {
  T* const to = a.data();
  const T* const from = b.data();
  const std::size_t n = a.size();
  for (std::size_t i = 0; i < n; ++i) to[i] = to[i] + from[i];
}

/// The sum of the shards of a node, one after the other: a vector a level is held at most.
/// @param make  make(shard, out): writes the shard's vector
template <class T, class Make>
std::vector<T> sum_of_node(ShardRange node, std::size_t size, Make& make) {
  if (node.count() == 1) {
    std::vector<T> out(size);
    make(node.first, std::span<T>(out));
    return out;
  }
  const Index middle = middle_of(node);
  std::vector<T> sum = sum_of_node<T>({node.first, middle}, size, make);
  const std::vector<T> right = sum_of_node<T>({middle, node.last}, size, make);
  add_into<T>(sum, right);
  return sum;
}

/// Elements [first, last) of a vector.
struct Slice {
  std::size_t first = 0, last = 0;

  std::size_t size() const { return last - first; }
  template <class T>
  std::span<T> of(std::vector<T>& values) const {
    return std::span<T>(values).subspan(first, size());
  }
};

/// Makes the sum of a node a rank, whose number is a power of two, that of all ranks, by halves
/// [Thakur et al. 2005, section 4]: each pair of ranks adds the halves that they exchange, until
/// each has a part of the sum; then the parts are exchanged backwards.
template <class T, Communicator C>
void sum_by_halves(C& ranks, std::vector<T>& values) {
  struct Exchanged {
    int partner;
    Slice kept, given;
  };
  std::vector<Exchanged> steps;
  std::vector<T> received(values.size() / 2 + 1);
  Slice mine{0, values.size()};
  for (int distance = 1; distance < ranks.size(); distance *= 2) {
    const bool lower = (ranks.rank() & distance) == 0;
    const int partner = ranks.rank() ^ distance;
    const std::size_t middle = mine.first + mine.size() / 2;
    Slice kept{mine.first, middle}, given{middle, mine.last};
    if (!lower) std::swap(kept, given);
    const std::span<T> into = std::span<T>(received).first(kept.size());
    ranks.exchange(partner, std::as_bytes(given.of(values)), partner, std::as_writable_bytes(into));
    // The lower rank's node is the left one; sums of two are the same either way round.
    add_into<T>(kept.of(values), into);
    steps.push_back({partner, kept, given});
    mine = kept;
  }
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    ranks.exchange(step->partner, std::as_bytes(step->kept.of(values)), step->partner,
                   std::as_writable_bytes(step->given.of(values)));
}

/// A node and a part of its sum.
template <class T>
struct NodePart {
  ShardRange node;
  std::vector<T> values;
};

/// The part of a node's sum, of what is known of the largest nodes below it.
template <class T>
std::vector<T> sum_of_parts(ShardRange node, const std::vector<NodePart<T>>& known) {
  for (const NodePart<T>& part : known)
    if (part.node == node) return part.values;
  const Index middle = middle_of(node);
  std::vector<T> sum = sum_of_parts<T>({node.first, middle}, known);
  const std::vector<T> right = sum_of_parts<T>({middle, node.last}, known);
  add_into<T>(sum, right);
  return sum;
}

/// The sum of all shards on any number of ranks, each of which knows some nodes' sums: a rank gets
/// a part of each of these from every other rank, adds them up as the tree says, and gives its part
/// of the sum to all.
template <class T, Communicator C>
std::vector<T> sum_by_parts(C& ranks, Index shards, std::size_t size,
                            std::vector<NodePart<T>> own) {
  const auto count = static_cast<std::size_t>(ranks.size());
  const auto rank = static_cast<std::size_t>(ranks.rank());
  const auto slice_of = [&](std::size_t r) {
    return Slice{size * r / count, size * (r + 1) / count};
  };
  const Slice mine = slice_of(rank);
  std::vector<NodePart<T>> known;
  for (NodePart<T>& part : own) {
    const auto values = mine.of(part.values);
    known.push_back({part.node, std::vector<T>(values.begin(), values.end())});
  }
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t to = (rank + i) % count, from = (rank + count - i) % count;
    std::vector<T> sent;
    for (NodePart<T>& part : own) {
      const auto values = slice_of(to).of(part.values);
      sent.insert(sent.end(), values.begin(), values.end());
    }
    const auto nodes = nodes_of(shards, shards_of(shards, ranks.size(), static_cast<int>(from)));
    std::vector<T> received(nodes.size() * mine.size());
    ranks.exchange(static_cast<int>(to), std::as_bytes(std::span(std::as_const(sent))),
                   static_cast<int>(from), std::as_writable_bytes(std::span(received)));
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const auto begin = received.begin() + static_cast<std::ptrdiff_t>(n * mine.size());
      known.push_back(
          {nodes[n], std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(mine.size()))});
    }
  }
  own.clear();
  const std::vector<T> part = sum_of_parts<T>({0, shards}, known);
  std::vector<T> sum(size);
  std::copy(part.begin(), part.end(), mine.of(sum).begin());
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t to = (rank + i) % count, from = (rank + count - i) % count;
    ranks.exchange(static_cast<int>(to), std::as_bytes(std::span(part)), static_cast<int>(from),
                   std::as_writable_bytes(slice_of(from).of(sum)));
  }
  return sum;
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
  const ShardRange own = shards_of(shards, ranks.size(), ranks.rank());
  const auto length = static_cast<std::size_t>(size);
  if (std::has_single_bit(static_cast<unsigned>(ranks.size()))) {
    std::vector<T> sum = detail::sum_of_node<T>(own, length, make);
    detail::sum_by_halves(ranks, sum);
    return sum;
  }
  std::vector<detail::NodePart<T>> nodes;
  for (const ShardRange& node : nodes_of(shards, own))
    nodes.push_back({node, detail::sum_of_node<T>(node, length, make)});
  return detail::sum_by_parts<T>(ranks, shards, length, std::move(nodes));
}

/// Computes the same sum by the communicator's own `all_reduce`: this rank's shards are summed as
/// the tree says, and what ranks have as the engine likes it. Its last bits depend on the number of
/// ranks, and on the engine.
/// @throws as `tree_sum`
template <class T, Communicator C, class Make>
std::vector<T> fast_sum(C& ranks, Index shards, Index size, Make&& make) {
  require_at_least("fast_sum", "size", size, 0);
  const ShardRange own = shards_of(shards, ranks.size(), ranks.rank());
  std::vector<T> sum = detail::sum_of_node<T>(own, static_cast<std::size_t>(size), make);
  ranks.all_reduce(std::span<T>(sum));
  return sum;
}

}  // namespace infty
