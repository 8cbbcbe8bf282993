// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/fwd.hpp>

namespace infty {

/// Which bucket of T5's relative positions a distance falls into [Raffel et al. 2020, §2.1]: one a
/// distance up to half of the buckets, wider and wider ones behind, and the last for all from
/// `max_distance` on.
struct T5Buckets {
  Index buckets = 32;        ///< in all
  Index max_distance = 128;  ///< from which on all distances share a bucket
  /// Whether keys to the right are told from those to the left, by half of the buckets each. If
  /// not, they count as distance 0.
  bool both_ways = false;

  /// The bucket of a key that stands `distance` places to the left of the query (negative: to the
  /// right), in [0, buckets).
  Index operator()(Index distance) const {
    distance = (std::max)(distance, -(std::numeric_limits<Index>::max)());
    const Index all = both_ways ? buckets / 2 : buckets, exact = all / 2;
    const Index side = both_ways && distance < 0 ? all : 0;
    const Index n = both_ways ? (distance < 0 ? -distance : distance) : distance < 0 ? 0 : distance;
    if (n < exact) return side + n;
    const auto part = [](Index a, Index b) {
      return std::log(static_cast<double>(a) / static_cast<double>(b));
    };
    const double beyond =
        part(n, exact) / part(max_distance, exact) * static_cast<double>(all - exact);
    return side + (beyond < static_cast<double>(all - exact - 1)
                       ? exact + static_cast<Index>(beyond)
                       : all - 1);
  }

  /// Checks the constants. @throws infty::ValueError unless each side has two buckets at least and
  /// `max_distance` is larger than the distances that have a bucket of their own
  void validate() const {
    const Index all = both_ways ? buckets / 2 : buckets;
    require(all >= 2 && (!both_ways || buckets % 2 == 0), "T5Buckets", "buckets is ", buckets,
            both_ways ? ": it must be even, >= 4" : ": it must be >= 2");
    require(max_distance > all / 2, "T5Buckets", "max_distance is ", max_distance,
            ": it must be > ", all / 2, ", the distances that have a bucket of their own");
    require_sizes("T5Buckets", {{"buckets", buckets}});
  }
};

/// A learned number for each bucket of distances and each head, to be added to attention scores.
/// Which bucket a distance falls into is asked of the rule, a function `Index rule(Index
/// distance)`.
template <class T, class Backend>
struct BucketBias {
  using V = Variable<T, Backend>;

  V weight;  ///< [buckets, H], zeros at first

  BucketBias() = default;

  /// Makes a table of zeros. @throws infty::ValueError unless both are >= 1
  BucketBias(Index buckets, Index heads) {
    require(buckets >= 1 && heads >= 1, "BucketBias", "buckets are ", buckets, ", heads ", heads,
            ": they must be >= 1");
    require_sizes("BucketBias", {{"buckets", buckets}, {"heads", heads}});
    weight = V(Tensor<T, Backend>::zeros(Shape{buckets, heads}), true);
  }

  /// The numbers of the distances first, ..., first + count - 1 -> [H, count].
  /// @throws infty::ValueError if the rule names a bucket that is not there
  template <class Rule>
  V by_distance(Index first, Index count, const Rule& rule) const {
    std::vector<Index> buckets;
    buckets.reserve(static_cast<std::size_t>(count));
    for (Index n = 0; n < count; ++n) buckets.push_back(rule(first + n));
    return transpose(embedding(Tensor<Index, Backend>::from(Shape{count}, buckets), weight), 0, 1);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
  }
};

}  // namespace infty
