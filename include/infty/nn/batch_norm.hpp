// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <utility>

#include <infty/autograd/linear.hpp>
#include <infty/core/number.hpp>
#include <infty/nn/fwd.hpp>

namespace infty {

namespace detail {

/// statistics [2, d]: mean and 1 / sqrt(variance + epsilon) of each column of x [rows, d], whose
/// running ones move towards them, the variance by its unbiased estimate.
template <class T, class B>
void batch_statistics(const Tensor<T, B>& x, Index rows, T momentum, T epsilon, T* statistics,
                      Tensor<T, B>& running_mean, Tensor<T, B>& running_variance) {
  const Index d = x.dim(-1);
  Tensor<T, B> squares(Shape{rows, d});
  Tensor<T, B> sums = Tensor<T, B>::zeros({2, d});
  const T* const in = x.data();
  T *const square = squares.data(), *const sum = sums.data();
  const T count = static_cast<T>(rows);
  add_column_sums<B>(rows, d, in, sum);
  for_each_element<B>(rows, d, [=] INFTY_HOST_DEVICE(Index i, Index j) {
    const T distance = in[i * d + j] - sum[j] / count;
    square[i * d + j] = distance * distance;
  });
  add_column_sums<B>(rows, d, square, sum + d);
  T *const mean = running_mean.data(), *const variance = running_variance.data();
  B::for_each(d, [=] INFTY_HOST_DEVICE(Index j) {
    const T m = sum[j] / count;
    statistics[j] = m;
    statistics[d + j] = T(1) / std::sqrt(sum[d + j] / count + epsilon);
    mean[j] = (T(1) - momentum) * mean[j] + momentum * m;
    variance[j] = (T(1) - momentum) * variance[j] + momentum * (sum[d + j] / (count - T(1)));
  });
}

}  // namespace detail

/// y = (x - mean) / sqrt(variance + epsilon) * gain + bias of every feature [Ioffe and Szegedy
/// 2015], as torch.nn.functional.batch_norm. In training mean and variance are those of all vectors
/// of x, the variance biased, and the running ones move towards them by `momentum`, the variance
/// by its unbiased estimate; otherwise they are the running ones. No gradient flows to these.
/// @param x                  [..., d]   @return [..., d]
/// @param gain, bias         [d]
/// @param mean, variance     [d], the running ones, written in training
/// @throws infty::ShapeError; infty::ValueError for one vector in training, which has no variance,
/// or unless momentum lies in [0, 1] and epsilon is above 0; then nothing has changed
template <class T, class B>
Variable<T, B> batch_norm(const Variable<T, B>& x, const Variable<T, B>& gain,
                          const Variable<T, B>& bias, Variable<T, B> mean, Variable<T, B> variance,
                          bool training, double momentum = .1, double epsilon = 1e-5) {
  require<ShapeError>(
      x.shape().rank() >= 1 && gain.shape() == Shape{x.dim(-1)} && bias.shape() == gain.shape() &&
          mean.shape() == gain.shape() && variance.shape() == gain.shape(),
      "batch_norm", "x is ", x.shape(), ", gain ", gain.shape(), ", bias ", bias.shape(), ", mean ",
      mean.shape(), ", variance ", variance.shape(), ": these must be [d], x [..., d]");
  require(math::is_finite(momentum) && momentum >= 0 && momentum <= 1, "batch_norm", "momentum is ",
          momentum, ": it must lie in [0, 1]");
  require(math::is_finite(epsilon) && static_cast<T>(epsilon) > T(0), "batch_norm", "epsilon is ",
          epsilon, ": it must be finite and above 0");
  const Index d = x.dim(-1), rows = x.shape().size(0, x.shape().rank() - 1);
  require(!training || rows != 1, "batch_norm", "x is ", x.shape(),
          ": in training there must be two vectors at least, one has no variance");
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  Tensor<T, B> statistics(Shape{2, d});
  T* const s = statistics.data();
  if (training && rows > 0) {
    detail::batch_statistics(x.value(), rows, static_cast<T>(momentum), static_cast<T>(epsilon), s,
                             mean.value(), variance.value());
  } else {
    const T* const m = std::as_const(mean).value().data();
    const T* const v = std::as_const(variance).value().data();
    const T least = static_cast<T>(epsilon);
    B::for_each(d, [=] INFTY_HOST_DEVICE(Index j) {
      s[j] = m[j];
      s[d + j] = T(1) / std::sqrt(v[j] + least);
    });
  }
  const T *const in = x.value().data(), *const g = gain.value().data(),
                 *const b = bias.value().data();
  T* const out = y.value().data();
  detail::for_each_element<B>(rows, d, [=] INFTY_HOST_DEVICE(Index i, Index j) {
    out[i * d + j] = (in[i * d + j] - s[j]) * s[d + j] * g[j] + b[j];
  });
  return record(
      y,
      [x, gain, bias, statistics, rows, d, training](const Tensor<T, B>& dy) {
        // With h = normalised x and c = dy gain: dx = (c - mean(c) - h mean(c h)) / sd in training,
        // c / sd otherwise; dgain = sum(dy h), dbias = sum(dy).
        const T *const from = x.value().data(), *const up = dy.data(),
                       *const stat = statistics.data(), *const scale = gain.value().data();
        Tensor<T, B> products(Shape{rows, d});  // dy h
        Tensor<T, B> sums = Tensor<T, B>::zeros({2, d});
        T *const product = products.data(), *const sum = sums.data();
        detail::for_each_element<B>(rows, d, [=] INFTY_HOST_DEVICE(Index i, Index j) {
          product[i * d + j] = up[i * d + j] * (from[i * d + j] - stat[j]) * stat[d + j];
        });
        detail::add_column_sums<B>(rows, d, up, sum);
        detail::add_column_sums<B>(rows, d, product, sum + d);
        if (bias.requires_grad()) {
          T* const to = bias.grad().data();
          B::for_each(d, [=] INFTY_HOST_DEVICE(Index j) { to[j] += sum[j]; });
        }
        if (gain.requires_grad()) {
          T* const to = gain.grad().data();
          B::for_each(d, [=] INFTY_HOST_DEVICE(Index j) { to[j] += sum[d + j]; });
        }
        if (!x.requires_grad()) return;
        const GradTarget<T> target = x.grad_target();
        T* const dx = target.data;
        const bool add = target.add;
        const T part = training ? T(1) / static_cast<T>(rows > 0 ? rows : 1) : T(0);
        detail::for_each_element<B>(rows, d, [=] INFTY_HOST_DEVICE(Index i, Index j) {
          const T h = (from[i * d + j] - stat[j]) * stat[d + j];
          const T slope =
              (up[i * d + j] - part * (sum[j] + h * sum[d + j])) * scale[j] * stat[d + j];
          dx[i * d + j] = add ? dx[i * d + j] + slope : slope;
        });
      },
      x, gain, Unread(bias));
}

/// Batch normalisation of features, as torch.nn.BatchNorm1d over all vectors of a batch.
///
/// The running statistics are variables that need no gradient: `visit` names them, so they are
/// counted, copied, moved, saved and loaded with the parameters, and as no gradient ever reaches
/// them, no optimiser, clipping or weight decay touches them. They move where `forward` is told
/// that it trains, though the layer is const: its copies share them, and no two threads may train
/// it at once. A training step that throws behind the forward pass leaves them moved.
template <class T, class Backend>
struct BatchNorm {
  Variable<T, Backend> weight;            ///< the gain, [d], ones at first
  Variable<T, Backend> bias;              ///< what is added, [d], zeros at first
  Variable<T, Backend> running_mean;      ///< [d], zeros at first, without gradient
  Variable<T, Backend> running_variance;  ///< [d], ones at first, without gradient
  double momentum = .1;                   ///< share of a batch in the running statistics
  double epsilon = 1e-5;                  ///< added to the variance

  BatchNorm() = default;

  /// Makes a norm of vectors of width d. @throws infty::ValueError unless d >= 1
  explicit BatchNorm(Index d, double momentum_ = .1, double epsilon_ = 1e-5)
      : momentum(momentum_), epsilon(epsilon_) {
    require(d >= 1, "BatchNorm", "d is ", d, ": it must be >= 1");
    weight = Variable<T, Backend>(Tensor<T, Backend>::full(Shape{d}, T(1)), true);
    bias = Variable<T, Backend>(Tensor<T, Backend>::zeros(Shape{d}), true);
    running_mean = Variable<T, Backend>(Tensor<T, Backend>::zeros(Shape{d}));
    running_variance = Variable<T, Backend>(Tensor<T, Backend>::full(Shape{d}, T(1)));
    running_mean.set_buffer(true);
    running_variance.set_buffer(true);
  }

  /// Normalises x, [..., d] -> [..., d], by the batch if it trains, and by the running statistics
  /// otherwise. @throws as `batch_norm`
  Variable<T, Backend> forward(const Variable<T, Backend>& x, bool training) const {
    return batch_norm(x, weight, bias, running_mean, running_variance, training, momentum, epsilon);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
    see("bias", bias);
    see("running_mean", running_mean);
    see("running_variance", running_variance);
  }
};

}  // namespace infty
