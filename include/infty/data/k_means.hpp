// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/random.hpp>

namespace infty {

/// What `k_means` finds.
struct Clusters {
  std::vector<Index> of = {};                     ///< the cluster of each point
  std::vector<std::vector<double>> centres = {};  ///< the mean of each cluster
  double squares = 0;                             ///< of the distances of all points to theirs
};

namespace detail {

inline double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

/// Centres for a start: points that are drawn with probabilities in proportion to their squared
/// distance from those that there are [Arthur and Vassilvitskii 2007]. A point that is one already
/// is drawn only where no others are left.
inline std::vector<std::vector<double>> first_centres(
    const std::vector<std::vector<double>>& points, Index k, Random& random) {
  std::vector<std::vector<double>> centres;
  std::vector<double> gaps(points.size(), 1);
  while (std::ssize(centres) < k) {
    double total = 0;
    for (const double d : gaps) total += d;
    const auto at = total > 0 ? random.categorical(gaps) : random.below(std::ssize(points));
    centres.push_back(points[static_cast<std::size_t>(at)]);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double d = squared_distance(points[i], centres.back());
      gaps[i] = centres.size() == 1 ? d : (std::min)(gaps[i], d);
    }
  }
  return centres;
}

/// Lloyd's iteration from these centres on, until no point changes its cluster or so many rounds
/// are over. A cluster that loses all its points gets the one that is farthest from its centre, of
/// those that are not alone.
inline Clusters lloyd(const std::vector<std::vector<double>>& points,
                      std::vector<std::vector<double>> centres, Index rounds) {
  Clusters out{.of = std::vector<Index>(points.size(), -1), .centres = std::move(centres)};
  const std::size_t k = out.centres.size();
  for (Index round = 0; round < rounds; ++round) {
    bool moved = false;
    std::vector<double> gaps(points.size());
    std::vector<Index> sizes(k, 0);
    for (std::size_t i = 0; i < points.size(); ++i) {
      std::size_t best = 0;
      gaps[i] = squared_distance(points[i], out.centres[0]);
      for (std::size_t c = 1; c < k; ++c)
        if (const double d = squared_distance(points[i], out.centres[c]); d < gaps[i]) {
          gaps[i] = d;
          best = c;
        }
      moved = moved || out.of[i] != static_cast<Index>(best);
      out.of[i] = static_cast<Index>(best);
      ++sizes[best];
    }
    for (std::size_t c = 0; c < k; ++c) {
      if (sizes[c] > 0) continue;
      std::size_t farthest = points.size();
      for (std::size_t i = 0; i < points.size(); ++i)
        if (sizes[static_cast<std::size_t>(out.of[i])] > 1 &&
            (farthest == points.size() || gaps[i] > gaps[farthest]))
          farthest = i;
      --sizes[static_cast<std::size_t>(out.of[farthest])];
      out.of[farthest] = static_cast<Index>(c);
      gaps[farthest] = 0;
      sizes[c] = 1;
      moved = true;
    }
    for (std::size_t c = 0; c < k; ++c) out.centres[c].assign(points.front().size(), 0);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto c = static_cast<std::size_t>(out.of[i]);
      for (std::size_t j = 0; j < points[i].size(); ++j)
        out.centres[c][j] += points[i][j] / static_cast<double>(sizes[c]);
    }
    if (!moved) break;
  }
  out.squares = 0;
  for (std::size_t i = 0; i < points.size(); ++i)
    out.squares += squared_distance(points[i], out.centres[static_cast<std::size_t>(out.of[i])]);
  return out;
}

}  // namespace detail

/// Puts points into k clusters, none of them empty, so that the squared distances from their means
/// are small in sum: the best of several runs of Lloyd's iteration from k-means++ starts, the first
/// of equals. Clusters are numbered in the order in which the points come to them.
/// @param points  of equally many numbers each
/// @param starts  runs  @param rounds  of each at most
/// @throws infty::ValueError unless 1 <= k <= points, starts, rounds >= 1 and all numbers lie in
/// [-1e140, 1e140], whose squares have a sum; infty::ShapeError for points of different lengths
inline Clusters k_means(const std::vector<std::vector<double>>& points, Index k, Random random,
                        Index starts = 10, Index rounds = 100) {
  require(k >= 1 && k <= std::ssize(points), "k_means", "k is ", k, ": it must lie in [1, ",
          points.size(), "], for none of the clusters is empty");
  require_at_least("k_means", "starts", starts, 1);
  require_at_least("k_means", "rounds", rounds, 1);
  for (std::size_t i = 0; i < points.size(); ++i) {
    require<ShapeError>(points[i].size() == points.front().size(), "k_means", "point ", i, " has ",
                        points[i].size(), " numbers, and point 0 has ", points.front().size());
    for (const double x : points[i])
      require(x >= -1e140 && x <= 1e140, "k_means", "point ", i, " has the number ", x,
              ": it must lie in [-1e140, 1e140]");
  }
  Clusters best;
  for (Index start = 0; start < starts; ++start) {
    Clusters one = detail::lloyd(points, detail::first_centres(points, k, random), rounds);
    if (start == 0 || one.squares < best.squares) best = std::move(one);
  }
  std::vector<Index> number(static_cast<std::size_t>(k), -1);
  std::vector<std::vector<double>> centres;
  for (Index& c : best.of) {
    Index& own = number[static_cast<std::size_t>(c)];
    if (own < 0) {
      own = std::ssize(centres);
      centres.push_back(std::move(best.centres[static_cast<std::size_t>(c)]));
    }
    c = own;
  }
  best.centres = std::move(centres);
  return best;
}

}  // namespace infty
