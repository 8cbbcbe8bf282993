// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/for_each.hpp>

namespace infty {

namespace detail {

/// What r = relu([x, -x]) holds, and what becomes of it.
template <class T>
struct Dpfp {
  const T* x;
  Index d, nu;

  INFTY_HOST_DEVICE Index wide() const { return 2 * d; }
  /// r at place i of a row, i counted around.
  INFTY_HOST_DEVICE T part(Index row, Index i) const {
    const Index n = wide(), at = (i % n + n) % n;
    const T value = at < d ? x[row * d + at] : -x[row * d + at - d];
    return value < T(0) ? T(0) : value;
  }
  /// r_i r_(i - j), i and j = 1, ..., nu of one number.
  INFTY_HOST_DEVICE T feature(Index row, Index column) const {
    const Index n = wide(), i = column % n, j = column / n + 1;
    return part(row, i) * part(row, i - j);
  }
  /// The gradient of r_i from those of the features.
  INFTY_HOST_DEVICE T slope(const T* dy, Index row, Index i) const {
    const Index n = wide();
    const T* const g = dy + row * n * nu;
    T sum = T(0);
    for (Index j = 1; j <= nu; ++j)
      sum +=
          g[(j - 1) * n + i] * part(row, i - j) + g[(j - 1) * n + (i + j) % n] * part(row, i + j);
    return sum;
  }
};

template <class T>
struct DpfpForward {
  Dpfp<T> of;
  T* y;
  INFTY_HOST_DEVICE void operator()(Index row, Index column) const {
    y[row * of.wide() * of.nu + column] = of.feature(row, column);
  }
};

template <class T>
struct DpfpBackward {
  Dpfp<T> of;
  const T* dy;
  T* dx;
  bool add;
  INFTY_HOST_DEVICE void operator()(Index row, Index i) const {
    const T value = of.x[row * of.d + i];
    const T change = value > T(0)   ? of.slope(dy, row, i)
                     : value < T(0) ? -of.slope(dy, row, i + of.d)
                                    : T(0);
    T& to = dx[row * of.d + i];
    to = add ? to + change : change;
  }
};

}  // namespace detail

/// Deterministic parameter-free projection, DPFP-ν [Schlag et al. 2021, §5.3]: of
/// r = relu([x, -x]) the products of r_i and r_(i - j) for j = 1, ..., ν, i - j counted around. Few
/// features of a vector are above 0, and those of other vectors are others.
/// @param x   [..., d]
/// @param nu  ν, >= 1
/// @return    [..., 2 d ν], those of j = 1 first
/// @throws infty::ShapeError unless d >= 1; infty::ValueError unless nu >= 1, and for sizes above
/// `largest_size`
template <class T, class B>
Variable<T, B> dpfp(const Variable<T, B>& x, Index nu) {
  require<ShapeError>(x.shape().rank() >= 1 && x.dim(-1) >= 1, "dpfp", "x is ", x.shape(),
                      ": it must be [..., d], d >= 1");
  require(nu >= 1, "dpfp", "nu is ", nu, ": it must be >= 1");
  const Index d = x.dim(-1), rows = x.shape().size(0, x.shape().rank() - 1);
  require_sizes("dpfp", {{"vectors", rows}, {"2 d", 2 * d}, {"nu", nu}});
  Variable<T, B> y(Tensor<T, B>(x.shape().with(-1, 2 * d * nu)));
  detail::for_each_element<B>(rows, 2 * d * nu,
                              detail::DpfpForward<T>{{x.value().data(), d, nu}, y.value().data()});
  return record(
      y,
      [x, rows, d, nu](const Tensor<T, B>& dy) {
        const auto to = x.grad_target();
        detail::for_each_element<B>(
            rows, d,
            detail::DpfpBackward<T>{{x.value().data(), d, nu}, dy.data(), to.data, to.add});
      },
      x);
}

}  // namespace infty
