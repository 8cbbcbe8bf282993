// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>
#include <infty/core/row.hpp>

namespace infty {

/// e^x_j / (sum of e^x) over the last dimension, without overflow: [..., n] -> [..., n].
/// @throws infty::ShapeError for a scalar
template <class T, class B>
Variable<T, B> softmax(const Variable<T, B>& x) {
  require<ShapeError>(x.shape().rank() >= 1, "softmax", "x is ", x.shape(),
                      ": it must have a dimension");
  const Index n = x.dim(-1), rows = n > 0 ? x.size() / n : 0;
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  const T* const from = x.value().data();
  T* const to = y.value().data();
  B::for_each_row(rows, 8 * n, [=] INFTY_HOST_DEVICE(Index i) {
    for (Index j = i * n; j < (i + 1) * n; ++j) to[j] = from[j];
    detail::row_softmax(n, to + i * n);
  });
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [x = Unread(x), result, n, rows](const Tensor<T, B>& dy) {
        // dx = y (dy - sum of y dy)
        const GradTarget<T> target = x.grad_target();
        const T *const py = result.data(), *const pd = dy.data();
        T* const dx = target.data;
        const bool add = target.add;
        B::for_each_row(rows, 4 * n, [=] INFTY_HOST_DEVICE(Index i) {
          const T *const p = py + i * n, *const d = pd + i * n;
          const T mean = detail::row_sum<T>(n, [=](Index j) { return p[j] * d[j]; });
          for (Index j = 0; j < n; ++j) {
            const T g = p[j] * (d[j] - mean);
            dx[i * n + j] = add ? dx[i * n + j] + g : g;
          }
        });
      },
      Unread(x), result);
}

}  // namespace infty
