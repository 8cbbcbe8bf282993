// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/parallel/communicator.hpp>
#include <infty/parallel/level_sums.hpp>
#include <infty/parallel/shard_tree.hpp>

// Sums of nodes that ranks have, made that of all shards on all ranks, by messages: see tree_sum.

namespace infty::detail {

/// Makes the sum of a node a rank, whose number is a power of two, that of all ranks, by halves
/// [Thakur et al. 2005, section 4]: each pair of ranks adds the halves that they exchange, until
/// each has a part of the sum; then the parts are exchanged backwards.
/// @param received  memory for messages, which grows as it has to
template <class T, Communicator C>
void sum_by_halves(C& ranks, std::span<T> values, std::vector<T>& received) {
  struct Exchanged {
    int partner;
    Slice kept, given;
  };
  std::vector<Exchanged> steps;
  if (received.size() < values.size() / 2 + 1) received.resize(values.size() / 2 + 1);
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
  std::span<T> values;
};

/// The part of a node's sum, of what is known of the largest nodes below it, from left to right; it
/// takes the place of that of the first of them.
template <class T>
std::span<T> sum_of_parts(ShardRange node, std::span<const NodePart<T>>& known) {
  if (known.front().node == node) {
    const std::span<T> values = known.front().values;
    known = known.subspan(1);
    return values;
  }
  const Index middle = middle_of(node);
  const std::span<T> left = sum_of_parts<T>({node.first, middle}, known);
  add_into<T>(left, sum_of_parts<T>({middle, node.last}, known));
  return left;
}

/// What `sum_by_parts` needs: it stays for the next sum.
template <class T>
struct PartsMemory {
  std::vector<T> sent, known;
  std::vector<NodePart<T>> nodes;
};

/// The sum of all shards on any number of ranks, each of which knows some nodes' sums: a rank gets
/// a part of each of these from every other rank, adds them up as the tree says, and gives its part
/// of the sum to all. It takes the place of the sum of this rank's first node.
template <class T, Communicator C>
void sum_by_parts(C& ranks, Index shards, std::span<const std::span<T>> own,
                  PartsMemory<T>& memory) {
  const auto count = static_cast<std::size_t>(ranks.size());
  const auto rank = static_cast<std::size_t>(ranks.rank());
  const std::span<T> sum = own.front();
  const auto slice_of = [&](std::size_t r) {
    return Slice{sum.size() * r / count, sum.size() * (r + 1) / count};
  };
  const Slice mine = slice_of(rank);
  // The parts of all ranks' nodes one behind the other, as the nodes are in the tree.
  std::vector<std::size_t> first(count + 1);
  memory.nodes.clear();
  for (std::size_t r = 0; r < count; ++r) {
    for (const ShardRange& node : nodes_of(shards, shards_of(shards, ranks.size(), int(r))))
      memory.nodes.push_back({node, {}});
    first[r + 1] = memory.nodes.size();
  }
  memory.known.resize((std::max)(memory.known.size(), memory.nodes.size() * mine.size()));
  const std::span<T> known(memory.known);
  for (std::size_t n = 0; n < memory.nodes.size(); ++n)
    memory.nodes[n].values = known.subspan(n * mine.size(), mine.size());
  for (std::size_t n = 0; n < own.size(); ++n) {
    const auto values = mine.of(own[n]);
    std::copy(values.begin(), values.end(), memory.nodes[first[rank] + n].values.begin());
  }
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t to = (rank + i) % count, from = (rank + count - i) % count;
    memory.sent.clear();
    for (const std::span<T>& node : own) {
      const auto values = slice_of(to).of(node);
      memory.sent.insert(memory.sent.end(), values.begin(), values.end());
    }
    const auto into =
        known.subspan(first[from] * mine.size(), (first[from + 1] - first[from]) * mine.size());
    ranks.exchange(static_cast<int>(to), std::as_bytes(std::span(std::as_const(memory.sent))),
                   static_cast<int>(from), std::as_writable_bytes(into));
  }
  std::span<const NodePart<T>> parts(memory.nodes);
  const std::span<T> part = sum_of_parts<T>({0, shards}, parts);
  std::copy(part.begin(), part.end(), mine.of(sum).begin());
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t to = (rank + i) % count, from = (rank + count - i) % count;
    ranks.exchange(static_cast<int>(to), std::as_bytes(part), static_cast<int>(from),
                   std::as_writable_bytes(slice_of(from).of(sum)));
  }
}

}  // namespace infty::detail
