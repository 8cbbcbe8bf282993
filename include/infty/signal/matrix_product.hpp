// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/backend.hpp>
#include <infty/core/config.hpp>
#include <infty/core/tensor.hpp>

namespace infty::detail {

/// C [m, n] = alpha op(A) op(B) + beta C of contiguous matrices.
template <class T, class B>
void multiply_into(T alpha, const Tensor<T, B>& a, bool transpose_a, const Tensor<T, B>& b,
                   bool transpose_b, T beta, Tensor<T, B>& c) {
  B::matmul({.m = c.dim(0),
             .n = c.dim(1),
             .k = a.dim(transpose_a ? 0 : 1),
             .a = {.leading = a.dim(1), .transposed = transpose_a},
             .b = {.leading = b.dim(1), .transposed = transpose_b},
             .c = {.leading = c.dim(1)}},
            alpha, a.data(), b.data(), beta, c.data());
}

/// C [m, n] = op(A) op(B) of contiguous matrices.
template <class T, class B>
Tensor<T, B> matrix_product(const Tensor<T, B>& a, bool transpose_a, const Tensor<T, B>& b,
                            bool transpose_b) {
  Tensor<T, B> c({a.dim(transpose_a ? 1 : 0), b.dim(transpose_b ? 0 : 1)});
  multiply_into(T(1), a, transpose_a, b, transpose_b, T(0), c);
  return c;
}

/// Aᵀ [n, m], contiguous.
template <class T, class B>
Tensor<T, B> transposed(const Tensor<T, B>& a) {
  const Index m = a.dim(0), n = a.dim(1);
  Tensor<T, B> out({n, m});
  T* const to = out.data();
  const T* const from = a.data();
  B::for_each(m * n, [=] INFTY_HOST_DEVICE(Index i) { to[i] = from[i % m * n + i / m]; });
  return out;
}

}  // namespace infty::detail
