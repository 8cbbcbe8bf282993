// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <infty/autograd/tape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>

namespace infty {

namespace detail {

/// y = x / max(sqrt(x · x + epsilon), floor) of each of `rows` vectors of width d, and the factors,
/// negative where the floor was taken.
template <class B, class T>
void normalise_vectors(Index rows, Index d, T epsilon, T floor, const T* x, T* y, T* factors) {
  B::for_each_row(rows, 4 * d, [=] INFTY_HOST_DEVICE(Index row) {
    const T* const from = x + row * d;
    const T length = std::sqrt(row_sum<T>(d, [=](Index i) { return from[i] * from[i]; }) + epsilon);
    const bool is_small = length <= floor;
    const T factor = T(1) / (is_small ? floor : length);
    for (Index i = 0; i < d; ++i) y[row * d + i] = from[i] * factor;
    factors[row] = is_small ? -factor : factor;
  });
}

/// dx = or += (dy - y (y · dy)) times the factor; where the floor was taken, dy times it.
template <class B, class T>
void normalise_vectors_backward(Index rows, Index d, const T* y, const T* factors, const T* dy,
                                GradTarget<T> target) {
  T* const to = target.data;
  const bool add = target.add;
  B::for_each_row(rows, 4 * d, [=] INFTY_HOST_DEVICE(Index row) {
    const T *const out = y + row * d, *const g = dy + row * d;
    const bool is_small = factors[row] < T(0);
    const T factor = is_small ? -factors[row] : factors[row];
    const T along = is_small ? T(0) : row_sum<T>(d, [=](Index i) { return out[i] * g[i]; });
    for (Index i = 0; i < d; ++i) {
      const T dx = factor * (g[i] - along * out[i]);
      to[row * d + i] = add ? to[row * d + i] + dx : dx;
    }
  });
}

}  // namespace detail

/// Vectors of length 1, x / max(sqrt(x · x + epsilon), floor), of each d numbers of the last
/// dimension: [..., n d] -> [..., n d]. With the defaults, as torch.nn.functional.normalize.
/// @param width  d; 0 stands for the last extent
/// @throws infty::ShapeError unless d divides the last extent; infty::ValueError unless epsilon
/// and floor lie in [0, 1e30] and one of them is > 0, so far that zeros by it are zeros
template <class T, class B>
Variable<T, B> unit_vectors(const Variable<T, B>& x, Index width = 0, double epsilon = 0,
                            double floor = 1e-12) {
  const Index last = x.shape().rank() >= 1 ? x.dim(-1) : 0, d = width > 0 ? width : last;
  require<ShapeError>(d >= 1 && width >= 0 && last % d == 0, "unit_vectors", "x is ", x.shape(),
                      ", d is ", d, ": it must divide the last extent");
  require_within("unit_vectors", "epsilon", epsilon, 0, largest_constant);
  require_within("unit_vectors", "floor", floor, 0, largest_constant);
  const T shortest = (std::max)(std::sqrt(static_cast<T>(epsilon)), static_cast<T>(floor));
  require(math::is_finite(T(1) / shortest), "unit_vectors", "epsilon is ", epsilon, ", floor ",
          floor, ": one of them must be > 0, and 1 / max(sqrt(epsilon), floor) a number");
  const Index rows = x.size() / d;
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  Tensor<T, B> factors(Shape{rows});
  detail::normalise_vectors<B>(rows, d, static_cast<T>(epsilon), static_cast<T>(floor),
                               x.value().data(), y.value().data(), factors.data());
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [x = Unread(x), result, factors, rows, d](const Tensor<T, B>& dy) {
        detail::normalise_vectors_backward<B>(rows, d, result.data(), factors.data(), dy.data(),
                                              x.grad_target());
      },
      Unread(x), result, factors);
}

}  // namespace infty
