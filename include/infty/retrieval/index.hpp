// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <string_view>

#include <infty/core/checked.hpp>
#include <infty/core/tensor.hpp>
#include <infty/retrieval/fwd.hpp>

namespace infty {

/// What makes a key near to a query.
enum class SearchMetric {
  squared_l2,    ///< a small |q - k|², the measure of kNN-LM (Khandelwal et al. 2020, section 2)
  inner_product  ///< a large q k, that of SPALM and of the continuous cache
};

/// The names of metrics in files, options and messages.
constexpr std::array<std::string_view, 2> names_of(SearchMetric) {
  return {"squared_l2", "inner_product"};
}

/// What a search finds for Q queries, k for each, the nearest first.
///
/// Scores are larger where keys are nearer, whatever the metric: the inner product, or minus the
/// squared distance. So a softmax of them is the distribution of kNN-LM (equation 2).
template <class T, class Backend>
struct Neighbours {
  Tensor<T, Backend> scores;       ///< [Q, k]; -infinity where there is none
  Tensor<Index, Backend> indices;  ///< [Q, k], entries of the datastore from 0 on; -1 for none

  /// The same in the memory of another backend.
  template <class Other>
  Neighbours<T, Other> to() const {
    return {scores.template to<Other>(), indices.template to<Other>()};
  }
};

/// A search for the keys of a datastore that are nearest to queries. Ours are `ExactIndex` and
/// `FaissIndex`; any type that offers the same is a third.
///
/// `search(queries, k)` takes queries [Q, D] and returns exactly k columns, also where there are
/// fewer keys; it may be called from any number of threads at once.
template <class S, class T, class Backend>
concept RetrievalIndex =
    requires(const S& index, const Tensor<T, Backend>& queries, infty::Index k) {
      { index.search(queries, k) } -> std::same_as<Neighbours<T, Backend>>;
      { index.size() } -> std::same_as<infty::Index>;  // keys that are searched
      { index.dim() } -> std::same_as<infty::Index>;   // D
      { index.metric() } -> std::same_as<SearchMetric>;
    };

namespace detail {

/// @throws infty::ShapeError unless queries are [Q, dim]; infty::ValueError unless k is 1 to
/// `largest_size`
template <class T, class B>
void require_search(std::string_view op, const Tensor<T, B>& queries, Index dim, Index k) {
  require<ShapeError>(queries.rank() == 2 && queries.dim(1) == dim, op, "queries are ",
                      queries.shape(), ": they must be [Q, ", dim, "]");
  require_at_least(op, "k", k, 1);
  require_sizes(op, {{"queries", queries.dim(0)}, {"k", k}});
}

}  // namespace detail

}  // namespace infty
