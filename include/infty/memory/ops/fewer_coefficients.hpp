// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/tensor.hpp>

namespace infty {

/// Turns coefficients of the functions of one width into those of the fewer functions that make
/// them up: Z[b] = C B_i[b], with rows i, i + widths, i + 2 widths, ... of B. With psi = Cᵀ phi,
/// the signals Bᵢᵀ psi and Zᵀ phi are one. Sums are in full, whatever products are otherwise.
/// @param weights       C, [M, n], see `fewer_gaussians`
/// @param coefficients  B, [batch, n widths, d]
/// @return              [batch, M, d]
/// @throws infty::ShapeError if shapes do not fit, or i is not in [0, widths)
template <class T, class B>
Variable<T, B> fewer_coefficients(const Tensor<T, B>& weights, const Variable<T, B>& coefficients,
                                  Index i, Index widths) {
  require<ShapeError>(weights.rank() == 2 && coefficients.shape().rank() == 3 && i >= 0 &&
                          i < widths && coefficients.dim(1) == weights.dim(1) * widths,
                      "fewer_coefficients", "weights are ", weights.shape(), ", coefficients ",
                      coefficients.shape(), ", width ", i, " of ", widths,
                      ": they must be [M, n] and [batch, n widths, d]");
  const Index M = weights.dim(0), n = weights.dim(1), batch = coefficients.dim(0),
              d = coefficients.dim(2);
  const Matmul::Operand given{.leading = widths * d, .outer = widths * n * d},
      made{.leading = d, .outer = M * d};
  Variable<T, B> y(Tensor<T, B>({batch, M, d}));
  B::matmul({.m = M, .n = d, .k = n, .a = {.leading = n}, .b = given, .c = made, .outer = batch},
            T(1), weights.data(), coefficients.value().data() + i * d, T(0), y.value().data());
  return record(
      y,
      [=, coefficients = Unread(coefficients)](const Tensor<T, B>& dy) {
        B::matmul({.m = n,
                   .n = d,
                   .k = M,
                   .a = {.leading = n, .transposed = true},
                   .b = made,
                   .c = given,
                   .outer = batch},
                  T(1), weights.data(), dy.data(), T(1), coefficients.grad().data() + i * d);
      },
      Unread(coefficients));
}

}  // namespace infty
