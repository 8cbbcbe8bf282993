// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

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

/// What a row is divided by: max(by + epsilon, floor), or without a floor (0) what it is.
template <class T>
struct RowDivisor {
  T epsilon, floor;

  INFTY_HOST_DEVICE bool is_floor(T by) const { return floor > T(0) && by + epsilon < floor; }
  INFTY_HOST_DEVICE T operator()(T by) const { return is_floor(by) ? floor : by + epsilon; }
};

/// y = x / max(by + epsilon, floor), every row of x [..., n] by its own number.
/// @param by  [..., 1]
template <class T, class B>
Variable<T, B> divided_rows(const Variable<T, B>& x, const Variable<T, B>& by,
                            RowDivisor<T> divisor_of) {
  const Index n = x.dim(-1), rows = by.size();
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  {
    const T *const from = x.value().data(), *const divisor = by.value().data();
    T* const to = y.value().data();
    for_each_span<B>(rows, n, n, [=] INFTY_HOST_DEVICE(Index i, Index begin, Index end) {
      for (Index j = i * n + begin; j < i * n + end; ++j) to[j] = from[j] / divisor_of(divisor[i]);
    });
  }
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [x, by, result, n, rows, divisor_of](const Tensor<T, B>& dy) {
        const T *const d = dy.data(), *const divisor = by.value().data();
        const T* const quotient = result.data();
        const RowDivisor<T> whole = divisor_of;
        const Index width = n;
        if (x.requires_grad()) {
          T* const dx = x.grad().data();
          for_each_span<B>(rows, n, n, [=] INFTY_HOST_DEVICE(Index i, Index begin, Index end) {
            for (Index j = i * width + begin; j < i * width + end; ++j)
              dx[j] += d[j] / whole(divisor[i]);
          });
        }
        if (by.requires_grad()) {
          T* const to = by.grad().data();
          B::for_each_row(rows, 2 * n, [=] INFTY_HOST_DEVICE(Index i) {
            if (whole.is_floor(divisor[i])) return;
            to[i] -=
                row_sum<T>(width,
                           [=](Index j) { return d[i * width + j] * quotient[i * width + j]; }) /
                whole(divisor[i]);
          });
        }
      },
      x, by, result);
}

}  // namespace detail

/// Linear attention that is divided by what all keys weigh [Katharopoulos et al. 2020, Eq. 9-12,
/// 18-20]: S ← S + k vᵀ, z ← z + k, o = s Sᵀq / max(s q·z + epsilon, s floor), s the scale. Queries
/// and keys are features, which should not be negative; where they may cancel, a floor above 0
/// bounds what is divided by. With decays, S and z fade by e^g before they are written to.
/// @param in    without β, H' = H
/// @param norm  z before the first place, [B, H, K]
/// @throws infty::ShapeError; infty::ValueError for options out of their range
template <class T, class B>
NormalizedLinearResult<T, B> normalized_linear_attention(
    const DeltaRuleInputs<T, B>& in, const Variable<T, B>& state, const Variable<T, B>& norm,
    double epsilon = 1e-10, const DeltaRuleOptions& options = {}, double floor = 0) {
  const Shape& q = in.query.shape();
  require<ShapeError>(in.beta.shape() == Shape{0} && q.rank() == 4 &&
                          in.value.shape().rank() == 4 && in.value.dim(2) == q[2] &&
                          norm.shape() == Shape{q[0], q[2], q[3]},
                      "normalized_linear_attention", "query is ", q, ", value ", in.value.shape(),
                      ", beta ", in.beta.shape(), ", norm ", norm.shape(),
                      ": they must be [B, L, H, K], [B, L, H, D], empty, and [B, H, K]");
  const auto [output, next] = delta_rule(in, state, options);
  // z is a memory of ones.
  const Variable<T, B> ones(Tensor<T, B>::full(Shape{q[0], q[1], q[2], 1}, T(1)));
  const auto [weight, sums] = delta_rule<T, B>({in.query, in.key, ones, {}, in.decay},
                                               reshape(norm, {q[0], q[2], q[3], 1}), options);
  const double s = options.scale > 0 ? options.scale : 1 / std::sqrt(static_cast<double>(q[3]));
  return {
      detail::divided_rows(output, weight, {static_cast<T>(epsilon), static_cast<T>(s * floor)}),
      next, reshape(sums, norm.shape())};
}

}  // namespace infty
