// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/tape.hpp>
#include <infty/core/row.hpp>

namespace infty {

/// x / max(|x|, least) over the last dimension, as torch.nn.functional.normalize: [..., d] ->
/// [..., d]. @param least  > 0, so that zeros stay zeros
/// @throws infty::ShapeError for a scalar
template <class T, class B>
Variable<T, B> unit_length(const Variable<T, B>& x, T least = T(1e-12)) {
  require<ShapeError>(x.shape().rank() >= 1, "unit_length", "x is ", x.shape(),
                      ": it must have a dimension");
  const Index d = x.dim(-1), rows = d > 0 ? x.size() / d : 0;
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  Tensor<T, B> lengths(Shape{rows});
  const T* const from = x.value().data();
  T *const to = y.value().data(), *const length = lengths.data();
  B::for_each_row(rows, 3 * d, [=] INFTY_HOST_DEVICE(Index i) {
    const T* const in = from + i * d;
    length[i] = std::sqrt(detail::row_sum<T>(d, [=](Index j) { return in[j] * in[j]; }));
    const T by = length[i] > least ? length[i] : least;
    for (Index j = 0; j < d; ++j) to[i * d + j] = in[j] / by;
  });
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [x, result, lengths, least, d, rows](const Tensor<T, B>& dy) {
        // dx = (dy - y (y dy)) / |x|, and of what is shorter than `least`, dy / least
        const GradTarget<T> target = x.grad_target();
        const T *const py = result.data(), *const pd = dy.data(), *const n = lengths.data();
        T* const dx = target.data;
        const bool add = target.add;
        const T floor = least;
        B::for_each_row(rows, 4 * d, [=] INFTY_HOST_DEVICE(Index i) {
          const T *const out = py + i * d, *const g = pd + i * d;
          const bool free = n[i] > floor;
          const T by = free ? n[i] : floor;
          const T along =
              free ? detail::row_sum<T>(d, [=](Index j) { return out[j] * g[j]; }) : T(0);
          for (Index j = 0; j < d; ++j) {
            const T g_x = (g[j] - out[j] * along) / by;
            dx[i * d + j] = add ? dx[i * d + j] + g_x : g_x;
          }
        });
      },
      Unread(x), result, lengths);
}

}  // namespace infty
