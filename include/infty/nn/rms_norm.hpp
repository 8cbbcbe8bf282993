// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/linear.hpp>
#include <infty/core/row.hpp>
#include <infty/nn/fwd.hpp>

namespace infty {

/// y = x / sqrt(mean(x²) + epsilon) · weight over the last dimension [Zhang and Sennrich 2019], as
/// torch.nn.functional.rms_norm.
/// @param x  [..., d]   @param weight  [d]   @return [..., d]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> rms_norm(const Variable<T, B>& x, const Variable<T, B>& weight,
                        T epsilon = T(1e-5)) {
  require<ShapeError>(x.shape().rank() >= 1 && x.dim(-1) >= 1 && weight.shape() == Shape{x.dim(-1)},
                      "rms_norm", "x is ", x.shape(), ", weight ", weight.shape(),
                      ": weight must be [d], x [..., d]");
  const Index d = x.dim(-1), rows = x.shape().size(0, x.shape().rank() - 1);
  const T share = T(1) / static_cast<T>(d);
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  Tensor<T, B> inverse(Shape{rows});  // r = 1 / sqrt(mean(x²) + epsilon)
  {
    const T *const in = x.value().data(), *const w = weight.value().data();
    T *const out = y.value().data(), *const r = inverse.data();
    B::for_each_row(rows, 3 * d, [=] INFTY_HOST_DEVICE(Index i) {
      const T* const from = in + i * d;
      const T squares = detail::row_sum<T>(d, [=](Index j) { return from[j] * from[j]; });
      const T by = r[i] = T(1) / std::sqrt(share * squares + epsilon);
      for (Index j = 0; j < d; ++j) out[i * d + j] = from[j] * by * w[j];
    });
  }
  return record(
      y,
      [x, weight, inverse, rows, d, share](const Tensor<T, B>& dy) {
        const T *const in = x.value().data(), *const w = weight.value().data();
        const T *const r = inverse.data(), *const out = dy.data();
        if (weight.requires_grad()) {
          Tensor<T, B> product(Shape{rows, d});  // dy x r
          T* const p = product.data();
          B::for_each_row(rows, d, [=] INFTY_HOST_DEVICE(Index i) {
            for (Index j = i * d; j < (i + 1) * d; ++j) p[j] = out[j] * in[j] * r[i];
          });
          detail::add_column_sums<B>(rows, d, p, weight.grad().data());
        }
        if (!x.requires_grad()) return;
        // With h = x r and c = dy weight: dx = (c - h mean(c h)) r
        const GradTarget<T> target = x.grad_target();
        T* const dx = target.data;
        const bool add = target.add;
        const Index width = d;
        const T each = share;
        B::for_each_row(rows, 4 * d, [=] INFTY_HOST_DEVICE(Index i) {
          const T *const from = in + i * width, *const seed = out + i * width;
          T* const to = dx + i * width;
          const T along = each * r[i] * r[i] * detail::row_sum<T>(width, [=](Index j) {
                            return seed[j] * w[j] * from[j];
                          });
          for (Index j = 0; j < width; ++j)
            to[j] = (add ? to[j] : T(0)) + (seed[j] * w[j] - along * from[j]) * r[i];
        });
      },
      x, weight);
}

/// Normalisation by the root of the mean square, with a gain and without a bias, as
/// torch.nn.RMSNorm.
template <class T, class Backend>
struct RMSNorm {
  Variable<T, Backend> weight;  ///< the gain, [d], ones at first
  T epsilon = T(1e-5);          ///< what is added to the mean square

  RMSNorm() = default;

  /// Makes a norm of vectors of width d with a gain of 1.
  /// @throws infty::ValueError unless d >= 1 and epsilon is finite and > 0
  explicit RMSNorm(Index d, T eps = T(1e-5)) : epsilon(eps) {
    require(d >= 1, "RMSNorm", "d is ", d, ": it must be >= 1");
    require(math::is_finite(eps) && eps > 0, "RMSNorm", "epsilon is ", eps,
            ": it must be finite and > 0");
    weight = Variable<T, Backend>(Tensor<T, Backend>::full(Shape{d}, T(1)), true);
  }

  /// Normalises x, [..., d] -> [..., d]. @throws infty::ShapeError for another d
  Variable<T, Backend> forward(const Variable<T, Backend>& x) const {
    return rms_norm(x, weight, epsilon);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
  }
};

}  // namespace infty
