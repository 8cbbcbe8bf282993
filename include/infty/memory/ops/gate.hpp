// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/linear.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/core/math.hpp>

namespace infty {

namespace detail {

/// A tensor [B, L + 2, d] whose first and last vector of each row are zero, the others not set.
template <class T, class B>
Tensor<T, B> between_zeros(Index batch, Index length, Index d) {
  Tensor<T, B> padded(Shape{batch, length + 2, d});
  T* const to = padded.data();
  const Index row = (length + 2) * d;
  for_each_element<B>(batch, d, [=] INFTY_HOST_DEVICE(Index i, Index j) {
    to[i * row + j] = to[(i + 1) * row - d + j] = T(0);
  });
  return padded;
}

}  // namespace detail

/// The gate on new vectors, sigmoid(conv(x)) * x with a convolution of width 3 along the sequence
/// and zeros beyond its ends   [Martins et al. 2022, Eq. 18].
/// @param x       [B, L, d]
/// @param weight  [3, d, d]: (k, out, in) weighs the vector at place i + k - 1
/// @param bias    [d]
/// @return        [B, L, d]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> gate(const Variable<T, B>& x, const Variable<T, B>& weight,
                    const Variable<T, B>& bias) {
  const Index d = x.shape().rank() == 3 ? x.dim(2) : -1;
  require<ShapeError>(d >= 0 && weight.shape() == Shape{3, d, d} && bias.shape() == Shape{d},
                      "gate", "x is ", x.shape(), ", weight ", weight.shape(), ", bias ",
                      bias.shape(), ": they must be [B, L, d], [3, d, d] and [d]");
  const Index batch = x.dim(0), length = x.dim(1), padded_row = (length + 2) * d;
  auto padded = detail::between_zeros<T, B>(batch, length, d);
  detail::copy_rows<B>(batch, length * d, x.value().data(), length * d, padded.data() + d,
                       padded_row);
  Tensor<T, B> opening(x.shape());  // sigmoid(conv(x))
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  {
    T *const s = opening.data(), *const out = y.value().data();
    const T *const b = bias.value().data(), *const in = x.value().data();
    detail::for_each_element<B>(batch * length, d,
                                [=] INFTY_HOST_DEVICE(Index i, Index j) { s[i * d + j] = b[j]; });
    for (Index k = 0; k < 3; ++k)
      B::matmul({.m = length,
                 .n = d,
                 .k = d,
                 .a = {.leading = d, .outer = padded_row},
                 .b = {.leading = d, .transposed = true},
                 .c = {.leading = d, .outer = length * d},
                 .outer = batch,
                 .roundable = true},
                T(1), padded.data() + k * d, weight.value().data() + k * d * d, T(1), s);
    B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) {
      s[i] = math::sigmoid(s[i]);
      out[i] = s[i] * in[i];
    });
  }
  return record(
      y,
      [x = Unread(x), weight, bias, padded, opening, batch, length, d,
       padded_row](const Tensor<T, B>& dy) {
        // With s the opening: d conv = dy x s (1 - s), between zeros like x, so that products over
        // all rows at once add nothing across a border.
        auto dconv = detail::between_zeros<T, B>(batch, length, d);
        const T *const in = padded.data(), *const s = opening.data(), *const d_out = dy.data();
        T* const dc = dconv.data();
        detail::for_each_element<B>(batch, length * d, [=] INFTY_HOST_DEVICE(Index row, Index k) {
          const Index i = row * length * d + k, at = row * padded_row + d + k;
          dc[at] = d_out[i] * in[at] * s[i] * (T(1) - s[i]);
        });
        if (bias.requires_grad())
          detail::add_column_sums<B>(batch * (length + 2), d, dc, bias.grad().data());
        const Index all = batch * (length + 2) - 2;
        for (Index k = 0; k < 3; ++k) {
          if (weight.requires_grad())
            detail::product<B>(d, d, all, true, false, dc + d, in + k * d, T(1),
                               weight.grad().data() + k * d * d, T(1), true);
          if (x.requires_grad())
            B::matmul({.m = length,
                       .n = d,
                       .k = d,
                       .a = {.leading = d, .outer = padded_row},
                       .b = {.leading = d},
                       .c = {.leading = d, .outer = length * d},
                       .outer = batch,
                       .roundable = true},
                      T(1), dc + (2 - k) * d, weight.value().data() + k * d * d, T(1),
                      x.grad().data());
        }
        if (x.requires_grad()) {
          T* const dx = x.grad().data();
          B::for_each(dy.size(), [=] INFTY_HOST_DEVICE(Index i) { dx[i] += d_out[i] * s[i]; });
        }
      },
      Unread(x), weight, Unread(bias));
}

}  // namespace infty
