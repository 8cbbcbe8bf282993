// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <infty/autograd/kept_factor.hpp>
#include <infty/autograd/stored_product.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/bfloat16.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/kernel/chosen.hpp>

namespace infty {

namespace detail {

/// C (m, n) = alpha op(A) op(B) + beta C of contiguous matrices.
template <class B, class T>
void product(Index m, Index n, Index k, bool transpose_a, bool transpose_b, const T* a, const T* b,
             T beta, T* c, T alpha = T(1), bool roundable = false) {
  B::matmul({.m = m,
             .n = n,
             .k = k,
             .a = {.leading = transpose_a ? m : k, .transposed = transpose_a},
             .b = {.leading = transpose_b ? k : n, .transposed = transpose_b},
             .c = {.leading = n},
             .roundable = roundable},
            alpha, a, b, beta, c);
}

/// y (rows, columns): each of its rows is b.
template <class B, class T>
void fill_rows(Index rows, Index columns, const T* b, T* y) {
  for_each_element<B>(rows, columns,
                      [=] INFTY_HOST_DEVICE(Index i, Index j) { y[i * columns + j] = b[j]; });
}

}  // namespace detail

/// The composition that defines a map with a bias. It runs on every backend and is the oracle of
/// the kernel that a backend may bring.
template <class B>
struct ComposedBiasedProduct {
  template <class Own = B>
  using Kernel = typename Own::FusedBiasedProduct;

  /// y (rows, out) = x (rows, in) Wᵀ + b.
  template <class T>
  static void multiply(Index rows, Index out, Index in, const T* x, const T* w, const T* b, T* y) {
    detail::fill_rows<B>(rows, out, b, y);
    detail::product<B>(rows, out, in, false, true, x, w, T(1), y, T(1), true);
  }
};

/// The composition that defines the sums over columns that gradients of biases are. It runs on
/// every backend and is the oracle of the fused kernel that a backend may bring.
template <class B>
struct ComposedColumnSums {
  template <class Own = B>
  using Kernel = typename Own::FusedColumnSums;

  /// sums (columns) += column sums of x (rows, columns), each in the order of the rows.
  template <class T>
  static void add(Index rows, Index columns, const T* x, T* sums) {
    // Bands of rows first, so that rows * columns elements are read along memory by many threads.
    constexpr Index band = 64;
    const Index bands = (rows + band - 1) / band;
    Tensor<T, B> partial(Shape{bands, columns});
    T* const part = partial.data();
    B::for_each_row(bands, band * columns, [=] INFTY_HOST_DEVICE(Index p) {
      T* const out = part + p * columns;
      for (Index j = 0; j < columns; ++j) out[j] = T(0);
      const Index end = (p + 1) * band < rows ? (p + 1) * band : rows;
      for (Index i = p * band; i < end; ++i)
        for (Index j = 0; j < columns; ++j) out[j] += x[i * columns + j];
    });
    B::for_each(columns, [=] INFTY_HOST_DEVICE(Index j) {
      T sum = T(0);
      for (Index p = 0; p < bands; ++p) sum += part[p * columns + j];
      sums[j] += sum;
    });
  }
};

namespace detail {

/// sums (columns) += column sums of x (rows, columns).
template <class B, class T>
void add_column_sums(Index rows, Index columns, const T* x, T* sums) {
  chosen_t<ComposedColumnSums<B>>::add(rows, columns, x, sums);
}

/// y (rows, out) = x (rows, in) Wᵀ + beta y, whose rows are `leading` apart, of a weight [out, in]
/// in full or stored in bfloat16.
template <class B, class T>
void weight_product(Index rows, const T* x, const Variable<T, B>& weight, T beta, T* y,
                    Index leading, bool roundable) {
  using Composed = ComposedStoredProduct<B>;
  const Index in = weight.dim(1), out = weight.dim(0);
  const Tensor<BFloat16, B>* const stored = weight.stored_in_bfloat16();
  if (!stored)
    return B::matmul({.m = rows,
                      .n = out,
                      .k = in,
                      .a = {.leading = in},
                      .b = {.leading = in, .transposed = true},
                      .c = {.leading = leading},
                      .roundable = roundable},
                     T(1), x, weight.value().data(), beta, y);
  if constexpr (HasKernel<Composed> && std::is_same_v<T, float>)
    if (chosen_t<Composed>::takes(rows, in))
      return chosen_t<Composed>::multiply(rows, out, in, x, stored->data(), beta, y, leading,
                                          roundable);
  Composed::multiply(rows, out, in, x, stored->data(), beta, y, leading, roundable);
}

/// y (rows, out) = x Wᵀ + b; no bias is empty.
template <class T, class B>
void linear_forward(Index rows, const Variable<T, B>& x, const Variable<T, B>& weight,
                    const Variable<T, B>& bias, T* y) {
  const Index in = weight.dim(1), out = weight.dim(0);
  const T* const px = x.value().data();
  if (bias.size() == 0) return weight_product(rows, px, weight, T(0), y, out, true);
  const T* const b = bias.value().data();
  if (!weight.stored_in_bfloat16())
    return chosen_t<ComposedBiasedProduct<B>>::multiply(rows, out, in, px, weight.value().data(), b,
                                                        y);
  fill_rows<B>(rows, out, b, y);
  weight_product(rows, px, weight, T(1), y, out, true);
}

/// dx = dy W, dW = dyᵀ x, db = sum of dy over the rows, of those that need a gradient.
template <class T, class B>
void linear_backward(Index rows, const Unread<T, B>& x, const KeptFactor<T, B>& kept,
                     const Variable<T, B>& weight, const Variable<T, B>& bias, const T* dy) {
  const Index in = weight.dim(1), out = weight.dim(0);
  if (x.requires_grad()) {
    const auto to = x.grad_target();
    product<B>(rows, in, out, false, false, dy, weight.value().data(), to.beta(), to.data, T(1),
               true);
  }
  if (weight.requires_grad()) {
    const auto to = weight.grad_target();
    kept.multiply(rows, out, in, dy, to.beta(), to.data);
  }
  if (bias.requires_grad()) add_column_sums<B>(rows, out, dy, bias.grad().data());
}

/// @throws infty::ShapeError unless x is [..., in], weight [out, in] and bias [out] or empty
template <class T, class B>
void require_linear(const char* op, const Variable<T, B>& x, const Variable<T, B>& weight,
                    const Variable<T, B>& bias) {
  require<ShapeError>(
      weight.shape().rank() == 2 && x.shape().rank() >= 1 && x.dim(-1) == weight.dim(1), op,
      "x is ", x.shape(), ", weight is ", weight.shape(),
      ": x must be [..., in] and weight [out, in]");
  require<ShapeError>(bias.size() == 0 || bias.shape() == Shape{weight.dim(0)}, op, "bias is ",
                      bias.shape(), ", weight is ", weight.shape(), ": bias must be [out]");
}

}  // namespace detail

/// Computes y = x Wᵀ + b over the last dimension, as torch.nn.functional.linear. A weight that is
/// stored in bfloat16 is read so, at half of a float's bytes.
/// @param x  [..., in]   @param weight  [out, in]   @param bias  [out], or empty for none
/// @return   [..., out]
/// @throws infty::ShapeError if the shapes do not fit
template <class T, class B>
Variable<T, B> linear(const Variable<T, B>& x, const Variable<T, B>& weight,
                      const Variable<T, B>& bias = {}) {
  detail::require_linear("linear", x, weight, bias);
  const Index rows = x.shape().size(0, x.shape().rank() - 1);
  Variable<T, B> y(Tensor<T, B>(x.shape().with(-1, weight.dim(0))));
  detail::linear_forward(rows, x, weight, bias, y.value().data());
  if (!Tape::active()) return y;
  const detail::KeptFactor kept(x, weight);
  return record(
      y,
      [x = Unread(x), kept, weight, bias, rows](const Tensor<T, B>& dy) {
        detail::linear_backward(rows, x, kept, weight, bias, dy.data());
      },
      ReadIf(x, kept.value()), weight, Unread(bias));
}

}  // namespace infty
