// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/retrieval/datastore.hpp>
#include <infty/retrieval/index.hpp>
#include <infty/retrieval/retrieved.hpp>

namespace infty {

/// What the softmax over neighbours is taken of.
enum class KnnSimilarity {
  searched,      ///< what the search goes by: -|q - k|², or q·k
  inner_product  ///< q·k from the stored keys, whatever the search goes by
};

/// The names of similarities.
constexpr std::array<std::string_view, 2> names_of(KnnSimilarity) {
  return {"searched", "inner_product"};
}

/// Constants of kNN-LM [Khandelwal et al. 2020].
struct KnnConfig {
  Index k = 1024;          ///< neighbours of a query (§3)
  double lambda = 0.25;    ///< share of the neighbours' distribution; 0.25 on WikiText-103 (§4.1)
  double temperature = 1;  ///< that similarities are divided by; the paper has none
  KnnSimilarity similarity = KnnSimilarity::searched;  ///< the paper's and its program's default

  /// Checks all constants. @throws infty::ValueError that names the first one out of its range
  void validate() const {
    const char* const op = "KnnConfig";
    require_at_least(op, "k", k, 1);
    require_sizes(op, {{"k", k}});
    require(lambda >= 0 && lambda < 1, op, "lambda is ", lambda, ": it must lie in [0, 1)");
    require_within(op, "temperature", temperature, least_divisor, largest_constant);
  }
};

/// The settings of kNN-LM.
template <class See>
void describe(KnnConfig& c, See&& see) {
  see("k", c.k, "neighbours of a query");
  see("lambda", c.lambda, "share of their distribution");
  see("temperature", c.temperature, "that similarities are divided by");
  see("similarity", c.similarity, "what the softmax over neighbours is taken of");
}

namespace detail {

/// The inner products of queries [Q, D] with the keys of entries [Q, k], -infinity for none.
template <class Stored, class T, class B>
Tensor<T, B> key_products(const Datastore<Stored>& store, const Tensor<T, B>& queries,
                          const Tensor<Index, B>& indices) {
  const Index rows = indices.dim(0), k = indices.dim(1), d = store.dim();
  const std::vector<T> asked = queries.to_vector();
  const std::vector<Index> entries = indices.to_vector();
  std::vector<T> products(entries.size());
  T* const to = products.data();
  EigenBackend::for_each_row(rows, k * d, [&](Index i) {
    const T* const query = asked.data() + i * d;
    for (Index j = i * k; j < (i + 1) * k; ++j) {
      const Index entry = entries[static_cast<std::size_t>(j)];
      const Stored* const key = entry < 0 ? nullptr : store.key(entry);
      to[j] = key ? row_sum<T>(d, [=](Index n) { return query[n] * key[n]; }) : -math::infinity<T>;
    }
  });
  return Tensor<T, B>::from(indices.shape(), products);
}

}  // namespace detail

/// What kNN-LM makes of neighbours: the tokens behind them, and as scores their similarities over
/// the temperature [Khandelwal et al. 2020, Eq. 2; Khandelwal et al. 2021].
/// @param queries     [Q, D], which the neighbours were searched for
/// @param neighbours  [Q, k]
/// @throws infty::ShapeError if the shapes do not fit, or an entry is not there; infty::ValueError
/// for a configuration that is not valid
template <class Stored, class T, class B>
Retrieved<T, B> retrieved(const Datastore<Stored>& store, const Tensor<T, B>& queries,
                          const Neighbours<T, B>& neighbours, const KnnConfig& config) {
  config.validate();
  const Shape& found = neighbours.indices.shape();
  require<ShapeError>(found.rank() == 2 && neighbours.scores.shape() == found &&
                          queries.shape() == Shape{found[0], store.dim()},
                      "retrieved", "queries are ", queries.shape(), ", indices ", found,
                      ", scores ", neighbours.scores.shape(), ": they must be [Q, ", store.dim(),
                      "], [Q, k] and [Q, k]");
  Retrieved<T, B> out{Tensor<T, B>(found), store.tokens(neighbours.indices)};
  const bool anew = config.similarity == KnnSimilarity::inner_product;
  const Tensor<T, B> similarities =
      anew ? detail::key_products(store, queries, neighbours.indices) : neighbours.scores;
  const T* const from = similarities.data();
  const T by = static_cast<T>(config.temperature);
  T* const to = out.scores.data();
  B::for_each(found.size(), [=] INFTY_HOST_DEVICE(Index i) { to[i] = from[i] / by; });
  return out;
}

/// Looks queries up in a datastore: the `config.k` nearest by an index of it, and what kNN-LM makes
/// of them. @throws as `retrieved`, and as the index
template <class Stored, class T, class B, RetrievalIndex<T, B> S>
Retrieved<T, B> look_up(const Datastore<Stored>& store, const S& index, const Tensor<T, B>& queries,
                        const KnnConfig& config) {
  config.validate();
  require<ShapeError>(index.dim() == store.dim() && index.size() <= store.size(), "look_up",
                      "the index is of ", index.size(), " keys of ", index.dim(),
                      " numbers, the datastore of ", store.size(), " of ", store.dim());
  return retrieved(store, queries, index.search(queries, config.k), config);
}

/// log(λ p_kNN + (1 - λ) p_LM) of every token [Khandelwal et al. 2020, Eq. 3], or, as it is the
/// same equation, of a linear cache [Grave et al. 2017, §3]; the model's own where nothing was
/// found, or all of it infinitely far. A gradient flows to the model's.
/// @param log_probabilities  the model's, [Q, vocabulary]
/// @throws infty::ShapeError; infty::ValueError for a token at or above the vocabulary, or unless
/// 0 <= lambda < 1
template <class T, class B>
Variable<T, B> interpolated(const Variable<T, B>& log_probabilities, const Retrieved<T, B>& found,
                            double lambda) {
  const Index vocabulary = log_probabilities.shape().rank() == 2 ? log_probabilities.dim(1) : 0;
  const auto p = token_probabilities(retrieved_weights(found), found.tokens, vocabulary);
  return interpolated(log_probabilities, p, retrieved_shares(found, lambda));
}

/// The same of one token a query: logarithms of the model's probabilities [Q] of targets [Q].
/// @throws as above
template <class T, class B>
Variable<T, B> interpolated(const Variable<T, B>& log_probabilities, const Retrieved<T, B>& found,
                            const Tensor<Index, B>& targets, double lambda) {
  const auto p = target_probabilities(retrieved_weights(found), found.tokens, targets);
  return interpolated(log_probabilities, p, retrieved_shares(found, lambda));
}

}  // namespace infty
