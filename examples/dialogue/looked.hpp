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

/// What was written to the memory of each block, in its order.
using Writes = std::vector<std::vector<Write>>;

/// Notes what the memories have taken in since they were last asked: `views` of the segment that
/// has just begun.
inline void note_writes(Writes& writes, const std::vector<support::LongTermView>& views,
                        bool sticky) {
  writes.resize(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    Index before = 0;
    for (const Write& write : writes[i]) before += write.count;
    if (views[i].written < before) {  // a threshold has cleared it
      writes[i].clear();
      before = 0;
    }
    if (views[i].written > before)
      writes[i].push_back({views[i].written - before,
                           sticky && before > 0 ? views[i].locations : std::vector<float>()});
  }
}

/// Where the tokens stand that the memory of a block has taken in.
inline support::Cells cells_of(const std::vector<Write>& writes, double tau, Index bins) {
  support::Cells cells;
  for (const Write& write : writes)
    cells.write(write.count, tau,
                write.locations.empty() ? support::Warp() : support::Warp(write.locations, bins));
  return cells;
}

/// The attention that each token in a block's memory got from queries, the mean over these and over
/// heads: shares of 1, less what falls beside the memory.
struct Looked {
  std::vector<double> shares;
  Index queries = 0;

  /// Adds what a view shows of a segment's queries to cells of the memory that they read.
  void add(const support::LongTermView& view, const support::Cells& cells) {
    shares.resize(std::max(shares.size(), static_cast<std::size_t>(cells.size())));
    if (cells.size() == 0) return;
    for (std::size_t i = 0; i < view.mu.size(); ++i) {
      const support::Below below(static_cast<double>(view.mu[i]),
                                 static_cast<double>(view.sigma[i]));
      double before = below(cells.begin(0));
      for (Index token = 0; token < cells.size(); ++token) {
        const double until = below(cells.end(token));
        shares[static_cast<std::size_t>(token)] += until - before;
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
