// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/core/tensor.hpp>
#include <infty/nn/attention.hpp>

namespace infty {

/// What vectors have read by attention until now: the averages of the values, and the logarithms of
/// their softmaxes' denominators, by which further keys can be averaged in.
template <class T, class B = EigenBackend>
struct RunningAttention {
  Tensor<T, B> context;  ///< [B, M, H D]
  Tensor<T, B> log_sum;  ///< [B, M, H]

  /// What vectors have read that have read nothing: zeros, and -inf, the logarithm of a denominator
  /// of 0. What is averaged in has a share of 1.
  static RunningAttention nothing(Index batch, Index vectors, Index heads, Index head_dim) {
    return {Tensor<T, B>::zeros(Shape{batch, vectors, heads * head_dim}),
            Tensor<T, B>::full(Shape{batch, vectors, heads}, -math::infinity<T>)};
  }
};

namespace detail {

/// The share that what was read before keeps when as many exp(score) have come to its denominator
/// as `fresh` is the logarithm of, a / (a + b + 1e-6) with the larger of a and b scaled to 1, and
/// its derivative by `fresh`   [Ji et al. 2022].
template <class T>
struct KeptShare {
  T share, derivative;

  INFTY_HOST_DEVICE KeptShare(T kept, T fresh) {
    constexpr T epsilon = T(1e-6);  // the authors'; it counts the more the less there is to average
    const T a = fresh > kept ? math::exp(kept - fresh) : T(1);
    const T b = fresh > kept ? T(1) : math::exp(fresh - kept);
    const T inverse = T(1) / (a + b + epsilon);
    share = a * inverse;
    derivative = -(fresh > kept ? a * (T(1) + epsilon) : b) * inverse * inverse;
  }
};

/// log(e^a + e^b).
template <class T>
INFTY_HOST_DEVICE T log_add(T a, T b) {
  return a > b ? a + std::log1p(math::exp(b - a)) : b + std::log1p(math::exp(a - b));
}

/// y (B, M, H D) = share kept + (1 - share) fresh, and log_sum (B, M, H) of both denominators; the
/// shares go to `shares` (B, M, H) unless that is null.
template <class T, class B>
void interpolate(const AttentionSize& s, const RunningAttention<T, B>& kept, const T* fresh,
                 const T* fresh_log, T* y, T* log_sum, T* shares) {
  const T *const context = kept.context.data(), *const kept_log = kept.log_sum.data();
  const Index D = s.head_dim;
  B::for_each_row(s.batch * s.queries * s.heads, 2 * D, [=] INFTY_HOST_DEVICE(Index row) {
    const T share = KeptShare<T>(kept_log[row], fresh_log[row]).share;
    for (Index d = row * D; d < (row + 1) * D; ++d)
      y[d] = context[d] * share + fresh[d] * (T(1) - share);
    log_sum[row] = log_add(kept_log[row], fresh_log[row]);
    if (shares) shares[row] = share;
  });
}

/// From dy (B, M, H D) the gradients of what was read ahead, d_fresh, and of its denominators'
/// logarithms, d_log (B, M, H).
template <class T, class B>
void interpolate_grad(const AttentionSize& s, const RunningAttention<T, B>& kept, const T* fresh,
                      const T* fresh_log, const T* dy, T* d_fresh, T* d_log) {
  const T *const context = kept.context.data(), *const kept_log = kept.log_sum.data();
  const Index D = s.head_dim;
  B::for_each_row(s.batch * s.queries * s.heads, 3 * D, [=] INFTY_HOST_DEVICE(Index row) {
    const KeptShare<T> kept_share(kept_log[row], fresh_log[row]);
    const T others = T(1) - kept_share.share;
    const Index at = row * D;
    for (Index d = at; d < at + D; ++d) d_fresh[d] = others * dy[d];
    d_log[row] = kept_share.derivative * row_sum<T>(D, [=](Index d) {
                   return dy[at + d] * (context[at + d] - fresh[at + d]);
                 });
  });
}

}  // namespace detail

}  // namespace infty
