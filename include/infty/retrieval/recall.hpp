// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/retrieval/index.hpp>

namespace infty {

/// The share of true neighbours that an approximate search finds: of each query's entries in
/// `exact` those that stand in the same query's row of `found`, over all queries. 1 where there is
/// nothing to be found.
/// @param found  of any k; `exact` of another, as in "5-recall at 10"
/// @throws infty::ShapeError unless both are of the same queries
template <class T, class B>
double neighbour_recall(const Neighbours<T, B>& found, const Neighbours<T, B>& exact) {
  const Shape& a = found.indices.shape();
  const Shape& b = exact.indices.shape();
  require<ShapeError>(a.rank() == 2 && b.rank() == 2 && a[0] == b[0], "neighbour_recall",
                      "neighbours are ", a, " and ", b, ": they must be [Q, k] of the same Q");
  std::vector<Index> seen = found.indices.to_vector();
  const std::vector<Index> wanted = exact.indices.to_vector();
  Index there = 0, all = 0;
  for (Index q = 0; q < a[0]; ++q) {
    const auto begin = seen.begin() + q * a[1], end = begin + a[1];
    std::sort(begin, end);
    for (auto at = wanted.begin() + q * b[1]; at != wanted.begin() + (q + 1) * b[1]; ++at) {
      if (*at < 0) continue;
      ++all;
      there += std::binary_search(begin, end, *at) ? 1 : 0;
    }
  }
  return all == 0 ? 1 : static_cast<double>(there) / static_cast<double>(all);
}

}  // namespace infty
