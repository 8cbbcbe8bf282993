// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/linear.hpp>
#include <infty/core/row.hpp>
#include <infty/nn/fwd.hpp>

namespace infty {

namespace detail {

/// y = x r gain with r = 1 / sqrt(mean x² + epsilon), and r, of each of `rows` vectors.
template <class B, class T>
void rms_normalise(Index rows, Index d, T epsilon, const T* x, const T* gain, T* y, T* inverse) {
  B::for_each_row(rows, 4 * d, [=] INFTY_HOST_DEVICE(Index row) {
    const T* const from = x + row * d;
    const T square = row_sum<T>(d, [=](Index i) { return from[i] * from[i]; });
    const T r = T(1) / std::sqrt(square / static_cast<T>(d) + epsilon);
    for (Index i = 0; i < d; ++i) y[row * d + i] = from[i] * r * gain[i];
    inverse[row] = r;
  });
}

/// dx = or += r (c - h mean(c h)) with c = dy gain and h = x r; h dy goes to `product` unless that
/// is null, and nothing is done about dx where there is no target.
template <class B, class T>
void rms_normalise_backward(Index rows, Index d, const T* x, const T* gain, const T* inverse,
                            const T* dy, T* product, GradTarget<T> target) {
  T* const to = target.data;
  const bool add = target.add;
  B::for_each_row(rows, 6 * d, [=] INFTY_HOST_DEVICE(Index row) {
    const T *const from = x + row * d, *const out = dy + row * d;
    const T r = inverse[row];
    if (product)
      for (Index i = 0; i < d; ++i) product[row * d + i] = out[i] * from[i] * r;
    if (!to) return;
    const T along =
        row_sum<T>(d, [=](Index i) { return out[i] * gain[i] * from[i] * r; }) / static_cast<T>(d);
    for (Index i = 0; i < d; ++i) {
      const T dx = r * (out[i] * gain[i] - from[i] * r * along);
      to[row * d + i] = add ? to[row * d + i] + dx : dx;
    }
  });
}

}  // namespace detail

/// y = x / sqrt(mean x² + epsilon) * gain over the last dimension [Zhang and Sennrich 2019], as
/// torch.nn.functional.rms_norm.
/// @param x  [..., d]   @param gain  [d]   @return [..., d]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> rms_norm(const Variable<T, B>& x, const Variable<T, B>& gain, T epsilon = T(1e-6)) {
  require<ShapeError>(x.shape().rank() >= 1 && gain.shape() == Shape{x.dim(-1)}, "rms_norm",
                      "x is ", x.shape(), ", gain ", gain.shape(),
                      ": they must be [..., d] and [d]");
  const Index d = x.dim(-1), rows = x.shape().size(0, x.shape().rank() - 1);
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  Tensor<T, B> inverse(Shape{rows});
  detail::rms_normalise<B>(rows, d, epsilon, x.value().data(), gain.value().data(),
                           y.value().data(), inverse.data());
  return record(
      y,
      [x, gain, inverse = std::as_const(inverse), rows, d](const Tensor<T, B>& dy) {
        Tensor<T, B> product(Shape{gain.requires_grad() ? rows : 0, d});
        detail::rms_normalise_backward<B>(
            rows, d, x.value().data(), gain.value().data(), inverse.data(), dy.data(),
            gain.requires_grad() ? product.data() : nullptr,
            x.requires_grad() ? x.grad_target() : GradTarget<T>{nullptr, false});
        if (gain.requires_grad())
          detail::add_column_sums<B>(rows, d, std::as_const(product).data(), gain.grad().data());
      },
      x, gain, inverse);
}

/// Normalisation by the root of the mean square, with a gain (1 at first) and no bias, as
/// torch.nn.RMSNorm and T5's layer norm.
template <class T, class Backend>
struct RmsNorm {
  Variable<T, Backend> weight;  ///< the gain, [d], ones at first
  double epsilon = 1e-6;        ///< added to the mean square

  RmsNorm() = default;

  /// Makes a norm of vectors of width d. @throws infty::ValueError unless d >= 1 and epsilon >= 0
  explicit RmsNorm(Index d, double epsilon_ = 1e-6) : epsilon(epsilon_) {
    require_at_least("RmsNorm", "d", d, 1);
    require_at_least("RmsNorm", "epsilon", epsilon_, 0.);
    weight = Variable<T, Backend>(Tensor<T, Backend>::full(Shape{d}, T(1)), true);
  }

  /// Normalises x, [..., d] -> [..., d]. @throws infty::ShapeError for another d
  Variable<T, Backend> forward(const Variable<T, Backend>& x) const {
    return rms_norm(x, weight, static_cast<T>(epsilon));
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
  }
};

}  // namespace infty
