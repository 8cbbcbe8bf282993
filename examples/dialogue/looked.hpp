// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "../support/cells.hpp"
#include "../support/gpt2/model.hpp"

// Where in what was read a model's long-term memories have looked.

namespace dialogue {

using infty::Index;

/// A write to the memory of a block: of so many tokens, and where a sticky one has sampled its old
/// signal.
struct Write {
  Index count = 0;
  std::vector<float> locations;
};

template <class See>
void each_field(Write& write, See&& see) {
  see("count", write.count);
  see("locations", write.locations);
}

/// What is in the memory of a block: writes, one behind the other, of the tokens from `first` on.
struct Written {
  Index first = 0;
  std::vector<Write> writes;
};

template <class See>
void each_field(Written& written, See&& see) {
  see("first", written.first);
  see("writes", written.writes);
}

/// That of each block, in its order.
using Writes = std::vector<Written>;

/// Notes what the memories have taken in since they were last asked: `views` of a segment that
/// begins behind so many tokens. A memory has taken in all of them, or those since a threshold
/// cleared it.
inline void note_writes(Writes& blocks, const std::vector<support::LongTermView>& views,
                        bool sticky, Index tokens) {
  tokens = std::max<Index>(tokens, 0);
  blocks.resize(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    Written& block = blocks[i];
    // A state from a file may claim anything.
    const Index written = std::clamp<Index>(views[i].written, 0, tokens), first = tokens - written;
    if (first != block.first) block = {.first = first, .writes = {}};
    Index before = 0;
    for (const Write& write : block.writes) before += write.count;
    if (written > before)
      block.writes.push_back(
          {written - before, sticky && before > 0 ? views[i].locations : std::vector<float>()});
  }
}

/// Where the tokens stand that the memory of a block has taken in.
inline support::Cells cells_of(const Written& written, double tau, Index bins) {
  support::Cells cells;
  for (const Write& write : written.writes)
    cells.write(write.count, tau,
                write.locations.empty() ? support::Warp() : support::Warp(write.locations, bins));
  return cells;
}

/// The attention that each token got from queries of a block's memory, the mean over these and over
/// heads: shares of 1, less what falls beside the memory. A token that was cleared from it has
/// none.
struct Looked {
  std::vector<double> shares;
  Index queries = 0;

  /// Adds what a view shows of a segment's queries to cells of the memory that they read, whose
  /// first is that of token `first`.
  void add(const support::LongTermView& view, const support::Cells& cells, Index first) {
    shares.resize(std::max(shares.size(), static_cast<std::size_t>(first + cells.size())));
    if (cells.size() == 0) return;
    for (std::size_t i = 0; i < view.mu.size(); ++i) {
      const support::Below below(static_cast<double>(view.mu[i]),
                                 static_cast<double>(view.sigma[i]));
      double before = below(cells.begin(0));
      for (Index token = 0; token < cells.size(); ++token) {
        const double until = below(cells.end(token));
        shares[static_cast<std::size_t>(first + token)] += until - before;
        before = until;
      }
    }
    queries += std::ssize(view.mu);
  }

  /// The share of tokens [begin, end).
  double of(Index begin, Index end) const {
    const auto clamped = [&](Index at) { return std::clamp<Index>(at, 0, std::ssize(shares)); };
    const double sum =
        std::accumulate(shares.begin() + clamped(begin), shares.begin() + clamped(end), 0.);
    return queries > 0 ? sum / static_cast<double>(queries) : 0;
  }
};

/// Passages of so many tokens, none of which overlap, that were looked at most; the most first.
inline std::vector<std::pair<Index, double>> most_looked_at(const Looked& looked, Index end,
                                                            Index length, std::size_t count) {
  std::vector<std::pair<Index, double>> all, best;
  for (Index begin = 0; begin < end; begin += std::max<Index>(1, length / 2))
    all.emplace_back(begin, looked.of(begin, std::min(end, begin + length)));
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& one : all) {
    if (best.size() == count || one.second <= 0) break;
    if (std::none_of(best.begin(), best.end(), [&](const auto& other) {
          return other.first < one.first + length && one.first < other.first + length;
        }))
      best.push_back(one);
  }
  return best;
}

}  // namespace dialogue
