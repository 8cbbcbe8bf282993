// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/core/config.hpp>
#include <infty/core/math.hpp>

/// Folds over one row. Sums run in sixteen lanes that are joined at the end, which a compiler turns
/// into vector code without being free to reorder them: the result depends on n alone.
namespace infty::detail {

inline constexpr Index row_lanes = 16;

/// Folds 2 `width` lanes, a power of two, into the first: halves onto halves, by loops of lengths
/// that a compiler knows.
template <Index width, class T, class Fold>
INFTY_HOST_DEVICE T join_lanes(T* lane, Fold fold) {
  for (Index l = 0; l < width; ++l) lane[l] = fold(lane[l], lane[l + width]);
  if constexpr (width > 1)
    return join_lanes<width / 2>(lane, fold);
  else
    return lane[0];
}

/// Computes the sum of f(i) for i in [0, n).
template <class T, class F>
INFTY_HOST_DEVICE T row_sum(Index n, F f) {
  T lane[row_lanes] = {};
  Index i = 0;
  for (; i + row_lanes <= n; i += row_lanes)
    for (Index l = 0; l < row_lanes; ++l) lane[l] += f(i + l);
  for (Index l = 0; i < n; ++i, ++l) lane[l] += f(i);
  return join_lanes<row_lanes / 2>(lane, [](T a, T b) { return a + b; });
}

/// Computes the largest f(i) for i in [0, n), n >= 1.
template <class T, class F>
INFTY_HOST_DEVICE T row_max(Index n, F f) {
  // Of no more than sixteen lanes GCC makes as many single numbers, not vectors.
  constexpr Index lanes = 2 * row_lanes;
  T lane[lanes];
  const T first = f(0);
  for (Index l = 0; l < lanes; ++l) lane[l] = first;
  const auto larger = [](T a, T b) { return b > a ? b : a; };
  Index i = 0;
  for (; i + lanes <= n; i += lanes)
    for (Index l = 0; l < lanes; ++l) lane[l] = larger(lane[l], f(i + l));
  for (Index l = 0; i < n; ++i, ++l) lane[l] = larger(lane[l], f(i));
  return join_lanes<lanes / 2>(lane, larger);
}

/// Turns n scores into their softmax in place, n >= 1, and returns the logarithm of its
/// denominator, the sum of exp(score).
template <class T>
INFTY_HOST_DEVICE T row_softmax(Index n, T* x) {
  const T top = row_max<T>(n, [=](Index j) { return x[j]; });
  for (Index j = 0; j < n; ++j) x[j] = math::exp_decay(x[j] - top);
  const T sum = row_sum<T>(n, [=](Index j) { return x[j]; }), inverse = T(1) / sum;
  for (Index j = 0; j < n; ++j) x[j] *= inverse;
  return top + std::log(sum);
}

}  // namespace infty::detail
