// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/core/tensor.hpp>
#include <infty/signal/bins.hpp>

namespace infty::detail {

/// Histograms [B, bins] with where queries of the given densities [2, B, H, Q] looked added to
/// them.
template <class Density, class T, class B>
Tensor<T, B> attention_since(const Tensor<T, B>& histograms, const Tensor<T, B>& density) {
  const Index batch = density.dim(1), each = density.dim(2) * density.dim(3);
  const auto mu = density.slice(0, 1).reshape(Shape{batch, each});
  Tensor<T, B> sigma(Shape{batch, each});
  const T* const var = density.data() + batch * each;
  T* const to = sigma.data();
  B::for_each(batch * each, [=] INFTY_HOST_DEVICE(Index i) { to[i] = std::sqrt(var[i]); });
  auto sum = bin_probability<Density>(mu, sigma, histograms.dim(1));
  T* const p = sum.data();
  const T* const before = histograms.data();
  B::for_each(sum.size(), [=] INFTY_HOST_DEVICE(Index i) { p[i] += before[i]; });
  return sum;
}

/// A copy of histograms [B, bins] in which rows without any attention attend evenly.
template <class T, class B>
Tensor<T, B> even_where_zero(const Tensor<T, B>& histograms) {
  const Index batch = histograms.dim(0), bins = histograms.dim(1);
  auto probability = histograms.clone();
  T* const p = probability.data();
  B::for_each_row(batch, bins, [=] INFTY_HOST_DEVICE(Index row) {
    T sum = 0;
    for (Index bin = 0; bin < bins; ++bin) sum += p[row * bins + bin];
    if (sum == T(0))
      for (Index bin = 0; bin < bins; ++bin) p[row * bins + bin] = T(1);
  });
  return probability;
}

}  // namespace infty::detail
