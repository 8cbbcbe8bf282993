// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/backend.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>

// Products of matrices [rows, chunks, m, n]: what a recurrence whose places go through products in
// chunks is made of.
namespace infty::detail {

/// Matrices [rows, chunks, m, n] as one side of a product, from chunk `first` on.
template <class T, class B>
struct ChunkOperand {
  const Tensor<T, B>& x;
  bool transposed;
  Index first;

  Matmul::Operand stride() const {
    return {.leading = x.dim(3),
            .outer = x.dim(1) * x.dim(2) * x.dim(3),
            .inner = x.dim(2) * x.dim(3),
            .transposed = transposed};
  }
  const T* data() const { return x.data() + first * stride().inner; }
};

template <class T, class B>
ChunkOperand<T, B> plain(const Tensor<T, B>& x, Index first = 0) {
  return {x, false, first};
}
template <class T, class B>
ChunkOperand<T, B> turned(const Tensor<T, B>& x, Index first = 0) {
  return {x, true, first};
}

/// c = alpha op(a) op(b) + beta c, for `chunks` matrices of every row, of c from chunk `first` on.
template <class T, class B>
void multiply_chunks(Index chunks, T alpha, const ChunkOperand<T, B>& a,
                     const ChunkOperand<T, B>& b, T beta, Tensor<T, B>& c, Index first = 0) {
  const auto to = plain(c, first).stride();
  B::matmul({.m = c.dim(2),
             .n = c.dim(3),
             .k = a.x.dim(a.transposed ? 2 : 3),
             .a = a.stride(),
             .b = b.stride(),
             .c = to,
             .outer = c.dim(0),
             .inner = chunks},
            alpha, a.data(), b.data(), beta, c.data() + first * to.inner);
}

/// to = x [..., n], every row of n times its own factor; x itself where there are no factors.
template <class T, class B>
Tensor<T, B> weighed(const Tensor<T, B>& x, const Tensor<T, B>& factors) {
  if (factors.empty()) return x;
  Tensor<T, B> y(x.shape());
  const Index n = x.dim(-1);
  const T *const from = x.data(), *const by = factors.data();
  T* const to = y.data();
  for_each_span<B>(x.size() / n, n, n, [=] INFTY_HOST_DEVICE(Index i, Index begin, Index end) {
    for (Index j = i * n + begin; j < i * n + end; ++j) to[j] = from[j] * by[i];
  });
  return y;
}

/// (I + A)⁻¹ of matrices A [rows, chunks, C, C] below the diagonal, row by row. Numbers whose
/// squares are below the least normal one become 0: where A holds decays, products of these are
/// among them.
template <class T, class B>
Tensor<T, B> unit_lower_inverse(const Tensor<T, B>& below) {
  const Index C = below.dim(3);
  Tensor<T, B> inverse(below.shape());
  const T* const A = below.data();
  T* const to = inverse.data();
  for_each_span<B>(below.size() / (C * C), C, C * C * C / 3,
                   [=] INFTY_HOST_DEVICE(Index n, Index begin, Index end) {
                     const T* const a = A + n * C * C;
                     T* const t = to + n * C * C;
                     for (Index i = 0; i < C; ++i) {
                       for (Index j = begin; j < end; ++j) t[i * C + j] = j == i ? T(1) : T(0);
                       for (Index m = begin; m < i; ++m) {  // T_mj is 0 for j > m
                         const T by = a[i * C + m];
                         const Index stop = m + 1 < end ? m + 1 : end;
                         for (Index j = begin; j < stop; ++j) t[i * C + j] -= by * t[m * C + j];
                       }
                       for (Index j = begin; j < end; ++j)
                         t[i * C + j] = math::without_tail<T>(t[i * C + j]);
                     }
                   });
  return inverse;
}

/// Matrices [rows, chunks, m, n] as rows [rows, chunks, 1, m n].
template <class T, class B>
Tensor<T, B> as_rows(const Tensor<T, B>& x) {
  return x.reshape(Shape{x.dim(0), x.dim(1), 1, x.dim(2) * x.dim(3)});
}

}  // namespace infty::detail
