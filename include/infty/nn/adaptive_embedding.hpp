// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include <infty/autograd/linear.hpp>
#include <infty/core/random.hpp>
#include <infty/nn/adaptive_config.hpp>
#include <infty/nn/clustered_rows.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/fwd.hpp>

namespace infty {

/// The adaptive input embedding [Baevski & Auli 2019, §3]: a table of vectors a cluster of the
/// vocabulary, narrower for rarer tokens, and a map of each to the width of the model. Without
/// cutoffs it is `Embedding`.
template <class T, class Backend>
class AdaptiveEmbedding {
 public:
  using V = Variable<T, Backend>;

  std::vector<V> weights;      ///< one a cluster, [its tokens, its width]
  std::vector<V> projections;  ///< [d, width]: one a cluster; one for all if they are equally
                               ///< wide; none if all are d wide

  AdaptiveEmbedding() = default;

  /// Draws normal numbers whose deviations give the elements of embedded tokens that of the
  /// configuration in all clusters.
  /// @throws infty::ValueError if the configuration is not valid
  explicit AdaptiveEmbedding(AdaptiveConfig config, Random random = Random(0))
      : config_((config.validate(), std::move(config))) {
    const auto draw = [](Shape shape, double deviation, Random from) {
      Tensor<T, Backend> value(shape);
      fill_normal(value, 0, deviation, from);
      return V(std::move(value), true);
    };
    const double deviation = config_.resolved_deviation();
    const Index d = config_.model_dim;
    for (Index i = 0; i < config_.clusters(); ++i) {
      const Index width = config_.width(i);
      const auto stream = static_cast<std::uint64_t>(2 * i);
      const double narrow = 1 / std::sqrt(static_cast<double>(width));
      weights.push_back(draw(Shape{config_.size(i), width},
                             config_.projected() ? narrow : deviation,
                             i == 0 ? random : random.split(stream)));
      if (config_.projected() && (i == 0 || config_.div_value > 1))
        projections.push_back(draw(Shape{d, width}, deviation, random.split(stream + 1)));
    }
  }

  /// The constants as given.
  const AdaptiveConfig& config() const { return config_; }

  /// Returns the map of cluster i, [d, width], empty if there is none.
  /// @throws infty::ValueError unless i is one of the clusters
  V projection(Index i) const {
    require(0 <= i && i < config_.clusters(), "AdaptiveEmbedding::projection", "cluster ", i,
            ": there are ", config_.clusters());
    if (projections.empty()) return {};
    return projections[projections.size() == 1 ? 0 : static_cast<std::size_t>(i)];
  }

  /// Embeds tokens, [...] -> factor * their vectors [..., d]   [Baevski and Auli 2019].
  /// @throws infty::ValueError for a token outside of the vocabulary
  V forward(const Tensor<Index, Backend>& tokens, T factor = T(1)) const {
    require(static_cast<Index>(weights.size()) == config_.clusters(), "AdaptiveEmbedding",
            "its tables are not there: it was made by default, or moved from");
    if (config_.clusters() == 1) return projected(embedding(tokens, weights[0], factor), 0);
    require<ShapeError>(tokens.rank() < Shape::max_rank, "embedding", "tokens are ", tokens.shape(),
                        ": they must have less than ", Shape::max_rank, " dimensions");
    detail::require_tokens("embedding", tokens, config_.vocabulary);
    if constexpr (detail::ComputesAllRows<Backend>)
      if (!any_by_rows()) return sum_of_clusters(tokens, factor);
    const auto clustered = detail::clustered_rows<Backend>(config_.bounds(), tokens);
    detail::RowLists<Backend> rows;
    detail::Variables<T, Backend> parts;
    for (Index i = 0; i < config_.clusters(); ++i) {
      if (clustered.size(i) == 0) continue;
      const V& table = weights[static_cast<std::size_t>(i)];
      rows.push_back(clustered.rows(i));
      parts.push_back(projected(embedding(clustered.tokens(i), table, factor), i));
    }
    const Index d = config_.model_dim;
    return reshape(detail::spread(tokens.size(), d, rows, parts),
                   detail::with_last(tokens.shape(), d));
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    if (weights.size() == 1 && projections.empty()) {
      see("weight", weights[0]);
    } else {
      see("weights", weights);
      see("projections", projections);
    }
  }

 private:
  // Whether a table's gradient keeps those of its rows that were read alone, which asks for a wait.
  bool any_by_rows() const {
    return std::any_of(weights.begin(), weights.end(),
                       [](const V& table) { return table.grad_by_rows(); });
  }

  // Every cluster gives zeros for the tokens of others.
  V sum_of_clusters(const Tensor<Index, Backend>& tokens, T factor) const {
    V sum;
    for (Index i = 0; i < config_.clusters(); ++i) {
      const auto own = detail::tokens_in_cluster(config_.bounds(), tokens, i, Index{-1});
      const V part =
          projected(detail::embedding_rows(own, weights[static_cast<std::size_t>(i)], factor), i);
      sum = i == 0 ? part : sum + part;
    }
    return sum;
  }

  V projected(const V& x, Index i) const {
    return projections.empty() ? x : linear(x, projection(i));
  }

  AdaptiveConfig config_;
};

namespace detail {

/// Refuses an embedding that has not the tables and maps that its configuration says.
/// @throws infty::ValueError for one that was made by default, or moved from
template <class T, class B>
void require_tables(const char* op, const AdaptiveEmbedding<T, B>& embedding) {
  const AdaptiveConfig& config = embedding.config();
  require(std::ssize(embedding.weights) == config.clusters() &&
              embedding.projections.empty() != config.projected(),
          op, "the embedding's tables are not there: it was made by default, or moved from");
}

}  // namespace detail

}  // namespace infty
