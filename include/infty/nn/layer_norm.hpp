// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/linear.hpp>
#include <infty/core/row.hpp>
#include <infty/nn/fwd.hpp>

namespace infty {

/// The composition that defines `layer_norm` and its gradient, from primitives. It runs on every
/// backend and is the oracle of the fused kernels that a backend may bring.
template <class B>
struct ComposedLayerNorm {
  /// y [rows, d] of x [rows, d], gain and bias [d], and the statistics [rows, 2] that the backward
  /// pass wants: mean and 1 / sqrt(var + epsilon).
  template <class T>
  static void forward(Index rows, Index d, T epsilon, const T* x, const T* gain, const T* bias,
                      T* y, T* statistics) {
    B::for_each_row(rows, 4 * d, [=] INFTY_HOST_DEVICE(Index i) {
      const T* const in = x + i * d;
      T* const out = y + i * d;
      const T mean = detail::row_sum<T>(d, [=](Index j) { return in[j]; }) / static_cast<T>(d);
      const T var =
          detail::row_sum<T>(d, [=](Index j) { return (in[j] - mean) * (in[j] - mean); }) /
          static_cast<T>(d);
      const T inverse = T(1) / std::sqrt(var + epsilon);
      for (Index j = 0; j < d; ++j) out[j] = (in[j] - mean) * inverse * gain[j] + bias[j];
      statistics[2 * i] = mean;
      statistics[2 * i + 1] = inverse;
    });
  }

  /// Adds to dx, d_gain and d_bias, where they are not null, from dy [rows, d]; without `add`, dx
  /// is overwritten.
  template <class T>
  static void backward(Index rows, Index d, const T* x, const T* gain, const T* statistics,
                       const T* dy, T* dx, T* d_gain, T* d_bias, bool add = true) {
    if (d_bias) detail::add_column_sums<B>(rows, d, dy, d_bias);
    if (d_gain) {
      Tensor<T, B> product(Shape{rows, d});  // dy * normalised x
      T* const p = product.data();
      B::for_each_row(rows, d, [=] INFTY_HOST_DEVICE(Index i) {
        for (Index j = i * d; j < (i + 1) * d; ++j)
          p[j] = dy[j] * (x[j] - statistics[2 * i]) * statistics[2 * i + 1];
      });
      detail::add_column_sums<B>(rows, d, p, d_gain);
    }
    if (!dx) return;
    // With h = normalised x and c = dy * gain: dx = (c - mean(c) - h mean(c h)) / sd
    B::for_each_row(rows, 6 * d, [=] INFTY_HOST_DEVICE(Index i) {
      const T *const in = x + i * d, *const out = dy + i * d;
      T* const to = dx + i * d;
      const T mean = statistics[2 * i], inverse = statistics[2 * i + 1];
      const T c =
          detail::row_sum<T>(d, [=](Index j) { return out[j] * gain[j]; }) / static_cast<T>(d);
      const T ch = detail::row_sum<T>(
                       d, [=](Index j) { return out[j] * gain[j] * (in[j] - mean) * inverse; }) /
                   static_cast<T>(d);
      for (Index j = 0; j < d; ++j)
        to[j] =
            (add ? to[j] : T(0)) + (out[j] * gain[j] - c - (in[j] - mean) * inverse * ch) * inverse;
    });
  }
};

namespace detail {

/// The backend's fused layer norm if it has one, the composition otherwise.
template <class B>
struct ChosenLayerNorm {
  using type = ComposedLayerNorm<B>;
};
template <class B>
  requires requires { typename B::FusedLayerNorm; }
struct ChosenLayerNorm<B> {
  using type = typename B::FusedLayerNorm;
};

}  // namespace detail

/// y = (x - mean) / sqrt(var + epsilon) * gain + bias over the last dimension [Ba et al. 2016],
/// with the biased variance, as torch.nn.functional.layer_norm.
/// @param x  [..., d]   @param gain, bias  [d]   @return [..., d]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> layer_norm(const Variable<T, B>& x, const Variable<T, B>& gain,
                          const Variable<T, B>& bias, T epsilon = T(1e-5)) {
  using Kernel = typename detail::ChosenLayerNorm<B>::type;
  require<ShapeError>(
      x.shape().rank() >= 1 && gain.shape() == Shape{x.dim(-1)} && bias.shape() == gain.shape(),
      "layer_norm", "x is ", x.shape(), ", gain ", gain.shape(), ", bias ", bias.shape(),
      ": gain and bias must be [d], x [..., d]");
  const Index d = x.dim(-1), rows = x.shape().size(0, x.shape().rank() - 1);
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  Tensor<T, B> statistics(Shape{rows, 2});
  Kernel::forward(rows, d, epsilon, x.value().data(), gain.value().data(), bias.value().data(),
                  y.value().data(), statistics.data());
  return record(
      y,
      [x, gain, bias, statistics, d, rows](const Tensor<T, B>& dy) {
        const auto to = [](const Variable<T, B>& input) {
          return input.requires_grad() ? input.grad().data() : nullptr;
        };
        const GradTarget<T> dx = x.requires_grad() ? x.grad_target() : GradTarget<T>{};
        Kernel::backward(rows, d, x.value().data(), gain.value().data(), statistics.data(),
                         dy.data(), dx.data, to(gain), to(bias), dx.add);
      },
      x, gain, Unread(bias));
}

/// Layer normalisation with a gain (1 at first) and a bias (0 at first), as torch.nn.LayerNorm.
template <class T, class Backend>
struct LayerNorm {
  Variable<T, Backend> weight, bias;

  LayerNorm() = default;

  /// @throws infty::ValueError unless d >= 1
  explicit LayerNorm(Index d) {
    require(d >= 1, "LayerNorm", "d is ", d, ": it must be >= 1");
    weight = Variable<T, Backend>(Tensor<T, Backend>::full(Shape{d}, T(1)), true);
    bias = Variable<T, Backend>(Tensor<T, Backend>::zeros(Shape{d}), true);
  }

  /// Normalises x, [..., d] -> [..., d]. @throws infty::ShapeError for another d
  Variable<T, Backend> forward(const Variable<T, Backend>& x) const {
    return layer_norm(x, weight, bias);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
    see("bias", bias);
  }
};

}  // namespace infty
