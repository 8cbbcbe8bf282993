// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/for_each.hpp>

namespace infty {

namespace detail {

/// r = relu([x, -x]) of a row of x, of 2 d numbers: runs of it that lie in one half, so that loops
/// over them are vector code.
template <class T>
struct DpfpRow {
  const T* x;
  Index d;

  /// Where a number of r comes from, and its sign.
  INFTY_HOST_DEVICE Index place(Index i) const { return i < d ? i : i - d; }
  INFTY_HOST_DEVICE T sign(Index i) const { return i < d ? T(1) : T(-1); }
  INFTY_HOST_DEVICE static T cut(T value) { return value < T(0) ? T(0) : value; }

  /// f(i, m, count) for runs i, i + 1, ... of [begin, end) and m, m + 1, ... with m = i + shift
  /// counted around, in which neither goes from one half to the other.
  template <class F>
  INFTY_HOST_DEVICE void each_run(Index begin, Index end, Index shift, const F& f) const {
    const Index n = 2 * d, ahead = (shift % n + n) % n;
    for (Index i = begin; i < end;) {
      const Index m = i + ahead < n ? i + ahead : i + ahead - n;
      const Index left = (i < d ? d : n) - i, other = (m < d ? d : n) - m;
      const Index most = left < other ? left : other, count = most < end - i ? most : end - i;
      f(i, m, count);
      i += count;
    }
  }
};

/// The features of columns [begin, end) of a row: r_i r_(i - j), i and j - 1 of one number.
template <class T>
struct DpfpForward {
  const T* x;
  Index d, nu;
  T* y;

  INFTY_HOST_DEVICE void operator()(Index row, Index begin, Index end) const {
    const Index n = 2 * d;
    const DpfpRow<T> r{x + row * d, d};
    for (Index j = begin / n; j * n < end; ++j) {
      const Index from = begin > j * n ? begin - j * n : 0,
                  to = end < (j + 1) * n ? end - j * n : n;
      T* const out = y + (row * nu + j) * n;
      r.each_run(from, to, -(j + 1), [&](Index i, Index m, Index count) {
        const T *const a = r.x + r.place(i), *const b = r.x + r.place(m);
        const T of_a = r.sign(i), of_b = r.sign(m);
        T* const feature = out + i;
        for (Index k = 0; k < count; ++k) feature[k] = r.cut(of_a * a[k]) * r.cut(of_b * b[k]);
      });
    }
  }
};

/// The gradient of x: r_i has those of r_i r_(i - j) and of r_(i + j) r_i.
template <class T>
struct DpfpBackward {
  const T* x;
  Index d, nu;
  const T* dy;
  T* dx;
  bool add;

  INFTY_HOST_DEVICE void operator()(Index row, Index begin, Index end) const {
    const Index n = 2 * d;
    const DpfpRow<T> r{x + row * d, d};
    T* const to = dx + row * d;
    if (!add)
      for (Index i = begin; i < end; ++i) to[i] = T(0);
    for (Index j = 1; j <= nu; ++j) {
      const T* const g = dy + (row * nu + j - 1) * n;
      for (Index half = 0; half <= d; half += d) {
        const auto add_run = [&](const T* of_feature, Index i, Index m, Index count) {
          const T *const a = r.x + r.place(i), *const b = r.x + r.place(m);
          const T of_a = r.sign(i), of_b = r.sign(m);
          T* const sum = to + r.place(i);
          for (Index k = 0; k < count; ++k) {
            const T slope = of_a * (of_feature[k] * r.cut(of_b * b[k]));
            sum[k] += of_a * a[k] > T(0) ? slope : T(0);
          }
        };
        r.each_run(half + begin, half + end, -j,
                   [&](Index i, Index m, Index count) { add_run(g + i, i, m, count); });
        r.each_run(half + begin, half + end, j,
                   [&](Index i, Index m, Index count) { add_run(g + m, i, m, count); });
      }
    }
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
  detail::for_each_span<B>(rows, 2 * d * nu, 2 * d * nu,
                           detail::DpfpForward<T>{x.value().data(), d, nu, y.value().data()});
  return record(
      y,
      [x, rows, d, nu](const Tensor<T, B>& dy) {
        const auto to = x.grad_target();
        detail::for_each_span<B>(
            rows, d, 4 * d * nu,
            detail::DpfpBackward<T>{x.value().data(), d, nu, dy.data(), to.data, to.add});
      },
      x);
}

}  // namespace infty
