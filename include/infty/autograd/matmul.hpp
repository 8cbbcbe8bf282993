// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/linear.hpp>

namespace infty {

namespace detail {

/// All dimensions but the last two.
inline Shape batch_of(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }

/// The shape of a batch of matrices (m, n).
inline Shape matrices(const Shape& batch, Index m, Index n) {
  std::array<Index, Shape::max_rank> extents{};
  std::copy(batch.begin(), batch.end(), extents.begin());
  const auto last = extents.begin() + batch.rank();
  last[0] = m;
  last[1] = n;
  return Shape(extents.begin(), last + 2);
}

/// c (batch, m, n) = op(a) op(b) + beta c, where `at` says which matrices of a and b meet.
template <class B, class T>
void batched_product(const Broadcast& at, Index m, Index n, Index k, bool transpose_a,
                     bool transpose_b, const T* a, const T* b, T beta, T* c) {
  if (at.columns == 0) return;
  // One call takes two dimensions of the batch.
  const Index inner = at.columns, outer = at.rank > 1 ? at.extent[1] : 1;
  for (Index row = 0; row < at.rows; row += outer)
    B::matmul({.m = m,
               .n = n,
               .k = k,
               .a = {.leading = transpose_a ? m : k,
                     .outer = at.a[1] * m * k,
                     .inner = at.a[0] * m * k,
                     .transposed = transpose_a},
               .b = {.leading = transpose_b ? k : n,
                     .outer = at.b[1] * k * n,
                     .inner = at.b[0] * k * n,
                     .transposed = transpose_b},
               .c = {.leading = n, .outer = inner * m * n, .inner = m * n},
               .outer = outer,
               .inner = inner},
              T(1), a + at.begin(at.a, row) * m * k, b + at.begin(at.b, row) * k * n, beta,
              c + row * inner * m * n);
}

/// Adds op(a) op(b), of the batch of dy, to the gradient of x, summed over the matrices of x that
/// were repeated.
template <template <class, class> class Handle, class T, class B>
void add_batched_product_to_grad(const Handle<T, B>& x, const Shape& batch, const Shape& batch_a,
                                 const Shape& batch_b, Index m, Index n, Index k, bool transpose_a,
                                 bool transpose_b, const T* a, const T* b) {
  const Broadcast at(batch_a, batch_b, batch);
  if (batch_of(x.shape()) == batch) {
    const auto to = x.grad_target();
    batched_product<B>(at, m, n, k, transpose_a, transpose_b, a, b, to.beta(), to.data);
    return;
  }
  Tensor<T, B> each(matrices(batch, m, n));
  batched_product<B>(at, m, n, k, transpose_a, transpose_b, a, b, T(0), each.data());
  add_to_grad(x, sum_to(each, x.shape()));
}

}  // namespace detail

/// The products of the matrices in the last two dimensions, as torch.matmul: [..., m, k] and
/// [..., k, n] -> [..., m, n]. Leading dimensions are broadcast; b may be one matrix [k, n], shared
/// by all rows of a, which may then be a vector [k].
/// @throws infty::ShapeError if the shapes do not fit
template <class T, class B>
Variable<T, B> matmul(const Variable<T, B>& a, const Variable<T, B>& b) {
  require<ShapeError>(b.shape().rank() >= 2 && a.shape().rank() >= (b.shape().rank() > 2 ? 2 : 1) &&
                          a.dim(-1) == b.dim(-2),
                      "matmul", "a is ", a.shape(), ", b is ", b.shape(),
                      ": they must be [..., m, k] and [..., k, n]");
  const Index k = a.dim(-1), n = b.dim(-1);
  const Tensor<T, B> of_a = detail::factor_for(b, a), of_b = detail::factor_for(a, b);
  if (b.shape().rank() == 2) {  // one product of all rows
    const Index rows = a.shape().size(0, a.shape().rank() - 1);
    Variable<T, B> y(Tensor<T, B>(a.shape().with(-1, n)));
    detail::product<B>(rows, n, k, false, false, a.value().data(), b.value().data(), T(0),
                       y.value().data());
    return record(
        y,
        [a = Unread(a), b = Unread(b), of_a, of_b, rows, n, k](const Tensor<T, B>& dy) {
          if (a.requires_grad()) {
            const auto to = a.grad_target();
            detail::product<B>(rows, k, n, false, true, dy.data(), of_b.data(), to.beta(), to.data);
          }
          if (b.requires_grad()) {
            const auto to = b.grad_target();
            detail::product<B>(k, n, rows, true, false, of_a.data(), dy.data(), to.beta(), to.data);
          }
        },
        ReadIf(a, of_a), ReadIf(b, of_b));
  }
  const Index m = a.dim(-2);
  const Shape rows_a = detail::batch_of(a.shape()), rows_b = detail::batch_of(b.shape());
  const Shape batch = detail::broadcast_shape("matmul", rows_a, rows_b);
  Variable<T, B> y((Tensor<T, B>(detail::matrices(batch, m, n))));
  detail::batched_product<B>(detail::Broadcast(rows_a, rows_b, batch), m, n, k, false, false,
                             a.value().data(), b.value().data(), T(0), y.value().data());
  return record(
      y,
      [a = Unread(a), b = Unread(b), of_a, of_b, rows_a, rows_b, batch, m, n,
       k](const Tensor<T, B>& dy) {
        // da = dy bᵀ, db = aᵀ dy
        if (a.requires_grad())
          detail::add_batched_product_to_grad(a, batch, batch, rows_b, m, k, n, false, true,
                                              dy.data(), of_b.data());
        if (b.requires_grad())
          detail::add_batched_product_to_grad(b, batch, rows_a, batch, k, n, m, true, false,
                                              of_a.data(), dy.data());
      },
      ReadIf(a, of_a), ReadIf(b, of_b));
}

}  // namespace infty
