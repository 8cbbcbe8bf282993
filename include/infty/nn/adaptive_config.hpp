// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/math.hpp>

namespace infty {

namespace detail {

/// Most clusters that a vocabulary can be cut into: so many bounds go into a kernel by value.
inline constexpr Index most_clusters = 16;

/// The bounds of clusters as a kernel wants them: cluster i holds tokens [bound[i], bound[i + 1]).
struct ClusterBounds {
  Index clusters = 1;
  Index bound[most_clusters + 1] = {};

  /// Finds the cluster of a token, -1 if it is outside of the vocabulary.
  INFTY_HOST_DEVICE Index cluster_of(Index token) const {
    if (token < bound[0]) return -1;
    for (Index i = 0; i < clusters; ++i)
      if (token < bound[i + 1]) return i;
    return -1;
  }
};

}  // namespace detail

/// How a vocabulary, sorted by falling frequency, is cut into clusters of which the rarer get
/// narrower vectors [Grave et al. 2017; Baevski & Auli 2019]. Without cutoffs there is one cluster
/// of vectors of width d, the plain embedding and softmax.
struct AdaptiveConfig {
  Index vocabulary = 21;            ///< different tokens, numbered by falling frequency
  Index model_dim = 300;            ///< d
  std::vector<Index> cutoffs = {};  ///< first tokens of all clusters but the first, rising
  Index div_value = 1;  ///< vectors of cluster i are embedding_dim / div_value^i wide, rounded down
  Index embedding_dim = 0;  ///< width in the first cluster; 0 stands for model_dim
  /// Standard deviation of the elements of embedded tokens at the beginning, in all clusters; 0
  /// stands for 1 / sqrt(d).
  double deviation = 0;

  /// Returns the number of clusters, cutoffs + 1.
  Index clusters() const { return static_cast<Index>(cutoffs.size()) + 1; }
  /// Returns the first token of cluster i.
  Index begin(Index i) const { return i == 0 ? 0 : cutoffs[static_cast<std::size_t>(i - 1)]; }
  /// Returns the number behind the last token of cluster i.
  Index end(Index i) const {
    return i + 1 == clusters() ? vocabulary : cutoffs[static_cast<std::size_t>(i)];
  }
  /// Counts the tokens in cluster i.
  Index size(Index i) const { return end(i) - begin(i); }
  /// Computes the width of the vectors of cluster i, embedding_dim / div_value^i.
  Index width(Index i) const {
    Index width = embedding_dim > 0 ? embedding_dim : model_dim;
    for (; i > 0; --i) width /= div_value;
    return width;
  }
  /// Returns whether vectors are mapped to width d.
  bool projected() const { return div_value > 1 || width(0) != model_dim; }

  /// The deviation, with 0 resolved.
  double resolved_deviation() const {
    return deviation > 0 ? deviation : 1 / std::sqrt(static_cast<double>(model_dim));
  }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("AdaptiveConfig", "vocabulary", vocabulary, 1);
    require_at_least("AdaptiveConfig", "model_dim", model_dim, 1);
    require_at_least("AdaptiveConfig", "div_value", div_value, 1);
    require_at_least("AdaptiveConfig", "embedding_dim", embedding_dim, 0);
    require_within("AdaptiveConfig", "deviation", deviation, 0, largest_constant);
    require(clusters() <= detail::most_clusters, "AdaptiveConfig", "there are ", cutoffs.size(),
            " cutoffs: there may be ", detail::most_clusters - 1);
    for (Index i = 0; i < clusters(); ++i) {
      require(begin(i) < end(i), "AdaptiveConfig", "cluster ", i, " is [", begin(i), ", ", end(i),
              "): cutoffs must rise and lie in [1, ", vocabulary, ")");
      require(width(i) >= 1, "AdaptiveConfig", "div_value is ", div_value,
              ": no width is left for cluster ", i);
    }
    for (Index i = 0; i < clusters(); ++i) {
      const NamedSize cluster{embedding_dim > 0 ? "embedding_dim" : "model_dim", width(i)};
      require_sizes("AdaptiveConfig", {{"vocabulary", size(i)}, cluster});
      if (projected()) require_sizes("AdaptiveConfig", {{"model_dim", model_dim}, cluster});
    }
  }

  /// Returns the clusters' bounds for kernels; the configuration must be valid.
  detail::ClusterBounds bounds() const {
    detail::ClusterBounds bounds{clusters(), {}};
    for (Index i = 0; i < clusters(); ++i) bounds.bound[i + 1] = end(i);
    return bounds;
  }
};

}  // namespace infty
