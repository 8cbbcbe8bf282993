// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/linear.hpp>
#include <infty/core/for_each.hpp>

namespace infty::detail {

/// Columns [first, first + weight.dim(0)) of y (rows, columns) = x weightᵀ + bias.
template <class T, class B>
void linear_columns(Index rows, const Variable<T, B>& x, const Variable<T, B>& weight,
                    const Variable<T, B>& bias, Index first, Index columns, T* y) {
  const Index out = weight.dim(0);
  const T* const b = bias.value().data();
  for_each_element<B>(
      rows, out, [=] INFTY_HOST_DEVICE(Index i, Index j) { y[i * columns + first + j] = b[j]; });
  weight_product(rows, x.value().data(), weight, T(1), y + first, columns, true);
}

/// The gradients of the above, where dy is that of all columns and `sums` what it sums to in each.
template <class T, class B>
void linear_columns_backward(Index rows, const Variable<T, B>& x, const Variable<T, B>& weight,
                             const Variable<T, B>& bias, Index first, Index columns, const T* dy,
                             const T* sums) {
  const Index out = weight.dim(0), in = weight.dim(1);
  if (x.requires_grad()) {
    const auto to = x.grad_target();
    B::matmul({.m = rows,
               .n = in,
               .k = out,
               .a = {.leading = columns},
               .b = {.leading = in},
               .c = {.leading = in},
               .roundable = true},
              T(1), dy + first, weight.value().data(), to.beta(), to.data);
  }
  if (weight.requires_grad()) {
    const auto to = weight.grad_target();
    B::matmul({.m = out,
               .n = in,
               .k = rows,
               .a = {.leading = columns, .transposed = true},
               .b = {.leading = in},
               .c = {.leading = in},
               .roundable = true},
              T(1), dy + first, x.value().data(), to.beta(), to.data);
  }
  if (bias.requires_grad())
    add_to_grad(bias, [=] INFTY_HOST_DEVICE(Index j) { return sums[first + j]; });
}

/// x [Wᵀ, Vᵀ] + [a, b] without putting the parameters together, which would copy a large table:
/// [rows, in], [m, in], [m], [n, in], [n] -> [rows, m + n].
template <class T, class B>
Variable<T, B> linear_pair(const Variable<T, B>& x, const Variable<T, B>& w,
                           const Variable<T, B>& a, const Variable<T, B>& v,
                           const Variable<T, B>& b) {
  const Index rows = x.dim(0), m = w.dim(0), columns = m + v.dim(0);
  Variable<T, B> y(Tensor<T, B>(Shape{rows, columns}));
  linear_columns(rows, x, w, a, 0, columns, y.value().data());
  linear_columns(rows, x, v, b, m, columns, y.value().data());
  return record(
      y,
      [x, w, a, v, b, rows, m, columns](const Tensor<T, B>& dy) {
        auto sums = Tensor<T, B>::zeros(Shape{columns});
        if (a.requires_grad() || b.requires_grad())
          add_column_sums<B>(rows, columns, dy.data(), sums.data());
        linear_columns_backward(rows, x, w, a, 0, columns, dy.data(), sums.data());
        linear_columns_backward(rows, x, v, b, m, columns, dy.data(), sums.data());
      },
      x, w, Unread(a), v, Unread(b));
}

}  // namespace infty::detail
