// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/linear.hpp>
#include <infty/core/kernel/chosen.hpp>
#include <infty/core/kernel/layer_norm.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/nn/fwd.hpp>

namespace infty {

/// The composition that defines `layer_norm` and its gradient, from primitives. It runs on every
/// backend and is the oracle of the fused kernels that a backend may bring.
template <class B>
struct ComposedLayerNorm {
  template <class Own = B>
  using Kernel = typename Own::FusedLayerNorm;

  /// y [rows, d], and the statistics [rows, 2] that the backward pass wants: mean and
  /// 1 / sqrt(var + epsilon).
  template <class T>
  static void forward(const LayerNormInputs<T>& in, T* y, T* statistics) {
    B::for_each_row(in.rows, 4 * in.d, [=] INFTY_HOST_DEVICE(Index i) {
      const Index d = in.d;
      const T* const x = in.x + i * d;
      T* const out = y + i * d;
      const T mean = detail::row_sum<T>(d, [=](Index j) { return x[j]; }) / static_cast<T>(d);
      const T var = detail::row_sum<T>(d, [=](Index j) { return (x[j] - mean) * (x[j] - mean); }) /
                    static_cast<T>(d);
      const T inverse = T(1) / std::sqrt(var + in.epsilon);
      for (Index j = 0; j < d; ++j) out[j] = (x[j] - mean) * inverse * in.gain[j] + in.bias[j];
      statistics[2 * i] = mean;
      statistics[2 * i + 1] = inverse;
    });
  }

  /// Adds to the gradients from dy [rows, d].
  template <class T>
  static void backward(const LayerNormInputs<T>& in, const T* statistics, const T* dy,
                       const LayerNormGradients<T>& to) {
    const Index rows = in.rows, d = in.d;
    const T *const x = in.x, *const gain = in.gain;
    if (to.bias) detail::add_column_sums<B>(rows, d, dy, to.bias);
    if (to.gain) {
      Tensor<T, B> product(Shape{rows, d});  // dy * normalised x
      T* const p = product.data();
      B::for_each_row(rows, d, [=] INFTY_HOST_DEVICE(Index i) {
        for (Index j = i * d; j < (i + 1) * d; ++j)
          p[j] = dy[j] * (x[j] - statistics[2 * i]) * statistics[2 * i + 1];
      });
      detail::add_column_sums<B>(rows, d, p, to.gain);
    }
    if (!to.x) return;
    // With h = normalised x and c = dy * gain: dx = (c - mean(c) - h mean(c h)) / sd
    B::for_each_row(rows, 6 * d, [=] INFTY_HOST_DEVICE(Index i) {
      const T *const row = x + i * d, *const out = dy + i * d;
      T* const dx = to.x + i * d;
      const T mean = statistics[2 * i], inverse = statistics[2 * i + 1];
      const T c =
          detail::row_sum<T>(d, [=](Index j) { return out[j] * gain[j]; }) / static_cast<T>(d);
      const T ch = detail::row_sum<T>(
                       d, [=](Index j) { return out[j] * gain[j] * (row[j] - mean) * inverse; }) /
                   static_cast<T>(d);
      for (Index j = 0; j < d; ++j)
        dx[j] = (to.add ? dx[j] : T(0)) +
                (out[j] * gain[j] - c - (row[j] - mean) * inverse * ch) * inverse;
    });
  }
};

/// y = (x - mean) / sqrt(var + epsilon) * gain + bias over the last dimension [Ba et al. 2016],
/// with the biased variance, as torch.nn.functional.layer_norm.
/// @param x  [..., d]   @param gain, bias  [d]   @return [..., d]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> layer_norm(const Variable<T, B>& x, const Variable<T, B>& gain,
                          const Variable<T, B>& bias, T epsilon = T(1e-5)) {
  using Kernel = detail::chosen_t<ComposedLayerNorm<B>>;
  require<ShapeError>(
      x.shape().rank() >= 1 && gain.shape() == Shape{x.dim(-1)} && bias.shape() == gain.shape(),
      "layer_norm", "x is ", x.shape(), ", gain ", gain.shape(), ", bias ", bias.shape(),
      ": gain and bias must be [d], x [..., d]");
  const Index d = x.dim(-1), rows = x.shape().size(0, x.shape().rank() - 1);
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  Tensor<T, B> statistics(Shape{rows, 2});
  const LayerNormInputs<T> in{
      rows, d, epsilon, x.value().data(), gain.value().data(), bias.value().data()};
  Kernel::forward(in, y.value().data(), statistics.data());
  return record(
      y,
      [x, gain, bias, statistics, rows, d, epsilon](const Tensor<T, B>& dy) {
        const auto to = [](const Variable<T, B>& input) {
          return input.requires_grad() ? input.grad().data() : nullptr;
        };
        const GradTarget<T> dx = x.requires_grad() ? x.grad_target() : GradTarget<T>{};
        Kernel::backward(
            LayerNormInputs<T>{rows, d, epsilon, x.value().data(), gain.value().data(), nullptr},
            statistics.data(), dy.data(),
            LayerNormGradients<T>{dx.data, to(gain), to(bias), dx.add});
      },
      x, gain, Unread(bias));
}

/// Layer normalisation with a gain (1 at first) and a bias (0 at first), as torch.nn.LayerNorm.
template <class T, class Backend>
struct LayerNorm {
  Variable<T, Backend> weight;  ///< the gain, [d], ones at first
  Variable<T, Backend> bias;    ///< what is added, [d], zeros at first
  T epsilon = T(1e-5);          ///< what is added to the variance, a constant

  LayerNorm() = default;

  /// Makes a norm of vectors of width d that changes no scale yet: gain 1, bias 0.
  /// @throws infty::ValueError unless d >= 1, and epsilon is positive and finite
  explicit LayerNorm(Index d, double epsilon_ = 1e-5) : epsilon(static_cast<T>(epsilon_)) {
    require(d >= 1, "LayerNorm", "d is ", d, ": it must be >= 1");
    require(math::is_finite(epsilon) && epsilon > T(0), "LayerNorm", "epsilon is ", epsilon_,
            ": it must be positive and finite");
    weight = Variable<T, Backend>(Tensor<T, Backend>::full(Shape{d}, T(1)), true);
    bias = Variable<T, Backend>(Tensor<T, Backend>::zeros(Shape{d}), true);
  }

  /// Normalises x, [..., d] -> [..., d]. @throws infty::ShapeError for another d
  Variable<T, Backend> forward(const Variable<T, Backend>& x) const {
    return layer_norm(x, weight, bias, epsilon);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
    see("bias", bias);
  }
};

}  // namespace infty
