// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/linear.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/for_each.hpp>

namespace infty {

/// Sums of the coefficients over the basis, weighed: y[b] = W B[b].
/// @param weight        [R, N]
/// @param coefficients  [B, N, d]
/// @return              [B, R, d]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> weighted_coefficients(const Variable<T, B>& weight,
                                     const Variable<T, B>& coefficients) {
  require<ShapeError>(weight.shape().rank() == 2 && coefficients.shape().rank() == 3 &&
                          weight.dim(1) == coefficients.dim(1),
                      "weighted_coefficients", "weight is ", weight.shape(), ", coefficients are ",
                      coefficients.shape(), ": they must be [R, N] and [B, N, d]");
  const Index R = weight.dim(0), N = weight.dim(1), batch = coefficients.dim(0),
              d = coefficients.dim(2);
  Variable<T, B> y(Tensor<T, B>(Shape{batch, R, d}));
  B::matmul({.m = R,
             .n = d,
             .k = N,
             .a = {.leading = N},
             .b = {.leading = d, .outer = N * d},
             .c = {.leading = d, .outer = R * d},
             .outer = batch},
            T(1), weight.value().data(), coefficients.value().data(), T(0), y.value().data());
  return record(
      y,
      [weight, coefficients, R, N, batch, d](const Tensor<T, B>& dy) {
        if (coefficients.requires_grad())
          B::matmul({.m = N,
                     .n = d,
                     .k = R,
                     .a = {.leading = N, .transposed = true},
                     .b = {.leading = d, .outer = R * d},
                     .c = {.leading = d, .outer = N * d},
                     .outer = batch},
                    T(1), weight.value().data(), dy.data(), T(1), coefficients.grad().data());
        if (weight.requires_grad()) {
          const T *const g = dy.data(), *const c = coefficients.value().data();
          T* const dw = weight.grad().data();
          if constexpr (detail::many_threads<B>) {
            Tensor<T, B> of_row(Shape{batch, R, N});
            B::matmul({.m = R,
                       .n = N,
                       .k = d,
                       .a = {.leading = d, .outer = R * d},
                       .b = {.leading = d, .outer = N * d, .transposed = true},
                       .c = {.leading = N, .outer = R * N},
                       .outer = batch},
                      T(1), g, c, T(0), of_row.data());
            detail::add_column_sums<B>(batch, R * N, of_row.data(), dw);
            return;
          }
          B::for_each_row(R * N, batch * d, [=] INFTY_HOST_DEVICE(Index i) {
            const Index r = i / N, n = i % N;
            T sum = 0;
            for (Index b = 0; b < batch; ++b)
              for (Index j = 0; j < d; ++j) sum += g[(b * R + r) * d + j] * c[(b * N + n) * d + j];
            dw[i] += sum;
          });
        }
      },
      weight, coefficients);
}

}  // namespace infty
