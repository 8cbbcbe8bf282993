// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/tape.hpp>
#include <infty/core/row.hpp>

namespace infty {

/// x / max(|x|, floor) over the last dimension, |x| the root of the sum of squares: vectors of
/// length 1, but for those shorter than `floor`. As torch.nn.functional.normalize.
/// @param x  [..., d]   @param floor  > 0   @return [..., d]
/// @throws infty::ShapeError for a scalar; infty::ValueError unless floor > 0
template <class T, class B>
Variable<T, B> unit_length(const Variable<T, B>& x, double floor = 1e-12) {
  require<ShapeError>(x.shape().rank() >= 1, "unit_length", "x is ", x.shape(),
                      ": it must be [..., d]");
  require(floor > 0, "unit_length", "floor is ", floor, ": it must be > 0");
  const Index d = x.dim(-1), rows = x.shape().size(0, x.shape().rank() - 1);
  const T least = static_cast<T>(floor);
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  Tensor<T, B> lengths(Shape{rows});
  const T* const in = x.value().data();
  T *const out = y.value().data(), *const length = lengths.data();
  B::for_each_row(rows, 3 * d, [=] INFTY_HOST_DEVICE(Index i) {
    const T* const v = in + i * d;
    length[i] = std::sqrt(detail::row_sum<T>(d, [=](Index j) { return v[j] * v[j]; }));
    const T inverse = T(1) / (length[i] > least ? length[i] : least);
    for (Index j = 0; j < d; ++j) out[i * d + j] = v[j] * inverse;
  });
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [x, result, lengths, rows, d, least](const Tensor<T, B>& dy) {
        // dx = (dy - y (y dy)) / |x|, and dy / floor where the length was not read
        const auto to = x.grad_target();
        T* const dx = to.data;
        const bool add = to.add;
        const Index width = d;
        const T floor_of = least;
        const T *const unit = result.data(), *const g = dy.data(), *const size = lengths.data();
        B::for_each_row(rows, 4 * d, [=] INFTY_HOST_DEVICE(Index i) {
          const T *const u = unit + i * width, *const v = g + i * width;
          const bool long_enough = size[i] > floor_of;
          const T along =
              long_enough ? detail::row_sum<T>(width, [=](Index j) { return u[j] * v[j]; }) : T(0);
          const T inverse = T(1) / (long_enough ? size[i] : floor_of);
          for (Index j = 0; j < width; ++j) {
            T& slope = dx[i * width + j];
            slope = (add ? slope : T(0)) + (v[j] - u[j] * along) * inverse;
          }
        });
      },
      Unread(x), result, lengths);
}

}  // namespace infty
