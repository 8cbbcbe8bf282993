// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/ops/delta_rule.hpp>

namespace infty {

/// What normalised linear attention returns; a gradient flows through all of it.
template <class T, class Backend = EigenBackend>
struct NormalizedLinearResult {
  Variable<T, Backend> output;  ///< [B, L, H, D]
  Variable<T, Backend> state;   ///< S behind the last place, [B, H, K, D]
  Variable<T, Backend> norm;    ///< z behind it, [B, H, K]
};

namespace detail {

/// y = x / (by + epsilon), every row of x [..., n] by its own number.
/// @param by  [..., 1]
template <class T, class B>
Variable<T, B> divided_rows(const Variable<T, B>& x, const Variable<T, B>& by, T epsilon) {
  const Index n = x.dim(-1), rows = by.size();
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  {
    const T *const from = x.value().data(), *const divisor = by.value().data();
    T* const to = y.value().data();
    for_each_span<B>(rows, n, n, [=] INFTY_HOST_DEVICE(Index i, Index begin, Index end) {
      for (Index j = i * n + begin; j < i * n + end; ++j) to[j] = from[j] / (divisor[i] + epsilon);
    });
  }
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [x, by, result, n, rows, epsilon](const Tensor<T, B>& dy) {
        const T *const d = dy.data(), *const divisor = by.value().data();
        const T* const quotient = result.data();
        const T least = epsilon;
        const Index width = n;
        if (x.requires_grad()) {
          T* const dx = x.grad().data();
          for_each_span<B>(rows, n, n, [=] INFTY_HOST_DEVICE(Index i, Index begin, Index end) {
            for (Index j = i * width + begin; j < i * width + end; ++j)
              dx[j] += d[j] / (divisor[i] + least);
          });
        }
        if (by.requires_grad()) {
          T* const to = by.grad().data();
          B::for_each_row(rows, 2 * n, [=] INFTY_HOST_DEVICE(Index i) {
            to[i] -=
                row_sum<T>(width,
                           [=](Index j) { return d[i * width + j] * quotient[i * width + j]; }) /
                (divisor[i] + least);
          });
        }
      },
      x, by, result);
}

}  // namespace detail

/// Linear attention that is divided by what all keys weigh [Katharopoulos et al. 2020, Eq. 9-12,
/// 18-20]: S ← S + k vᵀ, z ← z + k, o = s Sᵀq / (s q·z + epsilon), s the scale. Queries and keys
/// are features, which should not be negative.
/// @param in    without β and decay, H' = H
/// @param norm  z before the first place, [B, H, K]
/// @throws infty::ShapeError; infty::ValueError for options out of their range
template <class T, class B>
NormalizedLinearResult<T, B> normalized_linear_attention(const DeltaRuleInputs<T, B>& in,
                                                         const Variable<T, B>& state,
                                                         const Variable<T, B>& norm,
                                                         double epsilon = 1e-10,
                                                         const DeltaRuleOptions& options = {}) {
  const Shape& q = in.query.shape();
  require<ShapeError>(in.beta.shape() == Shape{0} && in.decay.shape() == Shape{0} &&
                          q.rank() == 4 && in.value.shape().rank() == 4 &&
                          in.value.dim(2) == q[2] && norm.shape() == Shape{q[0], q[2], q[3]},
                      "normalized_linear_attention", "query is ", q, ", value ", in.value.shape(),
                      ", beta ", in.beta.shape(), ", decay ", in.decay.shape(), ", norm ",
                      norm.shape(),
                      ": they must be [B, L, H, K], [B, L, H, D], empty twice, and [B, H, K]");
  const auto [output, next] = delta_rule(in, state, options);
  // z is a memory of ones.
  const Variable<T, B> ones(Tensor<T, B>::full(Shape{q[0], q[1], q[2], 1}, T(1)));
  const auto [weight, sums] =
      delta_rule<T, B>({in.query, in.key, ones}, reshape(norm, {q[0], q[2], q[3], 1}), options);
  return {detail::divided_rows(output, weight, static_cast<T>(epsilon)), next,
          reshape(sums, norm.shape())};
}

}  // namespace infty
