// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/bins.hpp>
#include <infty/signal/ridge.hpp>

namespace infty {

/// A basis at the nodes of a trapezoid rule, by which integrals over t become sums over nodes: the
/// integral of f(psi(t)) is the sum of weight f(psi).
template <class T, class B>
struct SampledBasis {
  Tensor<T, B> psi;         ///< [U, N], the functions at each node
  Tensor<T, B> weight;      ///< [U], of each node, > 0
  Tensor<T, B> log_weight;  ///< [U], its logarithm
  /// [P], which node a place belongs to: places beside each other where all functions are the same
  /// are one node, so that N cells cost N nodes, however many places there are.
  Tensor<Index, B> node;
};

/// Places 0, ..., 1 at even distances, both ends included. @throws infty::ValueError unless
/// points >= 2
inline std::vector<double> even_places(Index points) {
  require_at_least("even_places", "points", points, 2);
  require_sizes("even_places", {{"points", points}});
  std::vector<double> t(static_cast<std::size_t>(points));
  const double step = 1 / static_cast<double>(points - 1);
  for (Index i = 0; i < points; ++i)  // from the end that is nearer, so that both are exact
    t[static_cast<std::size_t>(i)] = i < points / 2
                                         ? static_cast<double>(i) * step
                                         : 1 - static_cast<double>(points - 1 - i) * step;
  return t;
}

/// The edges of `bins` equal parts of [0, 1], the outermost ones 1e-6 outside.
/// @throws infty::ValueError unless bins >= 1
inline std::vector<double> edge_places(Index bins) {
  require_at_least("edge_places", "bins", bins, 1);
  require_sizes("edge_places", {{"bins", bins}});
  std::vector<double> t(static_cast<std::size_t>(bins) + 1);
  for (Index i = 0; i <= bins; ++i)
    t[static_cast<std::size_t>(i)] = detail::bin_edge<double>(i, bins);
  return t;
}

/// Evaluates a basis for the trapezoid rule over places, in double whatever its scalar; tails as by
/// `math::without_tail`.
/// @param t      rising, two at least
/// @param merge  whether places beside each other with the same values become one node
/// @throws infty::ValueError unless t is so
template <class B, Basis Psi>
SampledBasis<typename Psi::Scalar, B> sampled_basis(const Psi& psi, const std::vector<double>& t,
                                                    bool merge) {
  using T = typename Psi::Scalar;
  require(t.size() >= 2, "sampled_basis", t.size(), " places: there must be two at least");
  for (std::size_t i = 1; i < t.size(); ++i)
    require(t[i] > t[i - 1], "sampled_basis", "place ", i, " is ", t[i], " behind ", t[i - 1],
            ": places must rise");
  const auto N = static_cast<std::size_t>(psi.size()), P = t.size();
  const auto all = detail::design_matrix<B>(psi, t.data(), static_cast<Index>(P)).to_vector();
  std::vector<T> values;
  std::vector<double> weights;
  std::vector<Index> node;
  for (std::size_t i = 0; i < P; ++i) {
    const double weight = ((i + 1 < P ? t[i + 1] : t[i]) - (i > 0 ? t[i - 1] : t[i])) / 2;
    bool same = merge && i > 0;
    for (std::size_t j = 0; same && j < N; ++j) same = all[j * P + i] == all[j * P + i - 1];
    if (same) {
      weights.back() += weight;
    } else {
      for (std::size_t j = 0; j < N; ++j) values.push_back(math::without_tail<T>(all[j * P + i]));
      weights.push_back(weight);
    }
    node.push_back(static_cast<Index>(weights.size()) - 1);
  }
  const auto U = static_cast<Index>(weights.size());
  std::vector<T> weight, log_weight;
  for (const double w : weights) {
    weight.push_back(static_cast<T>(w));
    log_weight.push_back(static_cast<T>(std::log(w)));
  }
  return {Tensor<T, B>::from(Shape{U, psi.size()}, values), Tensor<T, B>::from(Shape{U}, weight),
          Tensor<T, B>::from(Shape{U}, log_weight),
          Tensor<Index, B>::from(Shape{static_cast<Index>(P)}, node)};
}

}  // namespace infty
