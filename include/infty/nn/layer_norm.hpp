// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/linear.hpp>
#include <infty/core/row.hpp>
#include <infty/nn/fwd.hpp>

namespace infty {

/// y = (x - mean) / sqrt(var + epsilon) * gain + bias over the last dimension [Ba et al. 2016],
/// with the biased variance, as torch.nn.functional.layer_norm.
/// @param x  [..., d]   @param gain, bias  [d]   @return [..., d]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> layer_norm(const Variable<T, B>& x, const Variable<T, B>& gain,
                          const Variable<T, B>& bias, T epsilon = T(1e-5)) {
  require<ShapeError>(
      x.shape().rank() >= 1 && gain.shape() == Shape{x.dim(-1)} && bias.shape() == gain.shape(),
      "layer_norm", "x is ", x.shape(), ", gain ", gain.shape(), ", bias ", bias.shape(),
      ": gain and bias must be [d], x [..., d]");
  const Index d = x.dim(-1), rows = x.shape().size(0, x.shape().rank() - 1);
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  Tensor<T, B> statistics(Shape{rows, 2});  // mean, 1 / sqrt(var + epsilon)
  {
    const T *const px = x.value().data(), *const g = gain.value().data(),
                   *const b = bias.value().data();
    T *const py = y.value().data(), *const s = statistics.data();
    B::for_each_row(rows, 4 * d, [=] INFTY_HOST_DEVICE(Index i) {
      const T* const in = px + i * d;
      T* const out = py + i * d;
      const T mean = detail::row_sum<T>(d, [=](Index j) { return in[j]; }) / static_cast<T>(d);
      const T var =
          detail::row_sum<T>(d, [=](Index j) { return (in[j] - mean) * (in[j] - mean); }) /
          static_cast<T>(d);
      const T inverse = T(1) / std::sqrt(var + epsilon);
      for (Index j = 0; j < d; ++j) out[j] = (in[j] - mean) * inverse * g[j] + b[j];
      s[2 * i] = mean;
      s[2 * i + 1] = inverse;
    });
  }
  return record(
      y,
      [x, gain, bias, statistics, d, rows](const Tensor<T, B>& dy) {
        const T *const px = x.value().data(), *const s = statistics.data();
        const T* const pdy = dy.data();
        if (bias.requires_grad()) detail::add_column_sums<B>(rows, d, pdy, bias.grad().data());
        if (gain.requires_grad()) {
          Tensor<T, B> product(x.shape());  // dy * normalised x
          T* const p = product.data();
          B::for_each_row(rows, d, [=] INFTY_HOST_DEVICE(Index i) {
            for (Index j = i * d; j < (i + 1) * d; ++j)
              p[j] = pdy[j] * (px[j] - s[2 * i]) * s[2 * i + 1];
          });
          detail::add_column_sums<B>(rows, d, p, gain.grad().data());
        }
        if (x.requires_grad()) {
          // With h = normalised x and c = dy * gain: dx = (c - mean(c) - h mean(c h)) / sd
          const T* const g = gain.value().data();
          T* const pdx = x.grad().data();
          B::for_each_row(rows, 6 * d, [=] INFTY_HOST_DEVICE(Index i) {
            const T *const in = px + i * d, *const out = pdy + i * d;
            T* const dx = pdx + i * d;
            const T mean = s[2 * i], inverse = s[2 * i + 1];
            const T c =
                detail::row_sum<T>(d, [=](Index j) { return out[j] * g[j]; }) / static_cast<T>(d);
            const T ch = detail::row_sum<T>(
                             d, [=](Index j) { return out[j] * g[j] * (in[j] - mean) * inverse; }) /
                         static_cast<T>(d);
            for (Index j = 0; j < d; ++j)
              dx[j] += (out[j] * g[j] - c - (in[j] - mean) * inverse * ch) * inverse;
          });
        }
      },
      x, gain, bias);
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

  /// [..., d] -> [..., d]. @throws infty::ShapeError
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
