// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <type_traits>

#include <infty/autograd/tape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/sine.hpp>

namespace infty {

namespace detail {

/// [s sin x, s cos x] of the angles [begin, end) of a row.
template <class T>
struct SinesAndCosines {
  const T* x;
  T* y;
  Index width;
  T factor;

  INFTY_HOST_DEVICE void operator()(Index row, Index begin, Index end) const {
    const T *const from = x + row * width, s = factor;
    T *const sines = y + row * 2 * width, *const cosines = sines + width;
    Index distant = 0;
    for (Index j = begin; j < end; ++j) {
      const auto found = math::sine_and_cosine(from[j]);
      sines[j] = s * found.sine;
      cosines[j] = s * found.cosine;
      distant += is_near(from[j]) ? 0 : 1;
    }
    if (distant == 0) return;
    for (Index j = begin; j < end; ++j)
      if (!is_near(from[j])) {
        sines[j] = s * std::sin(from[j]);
        cosines[j] = s * std::cos(from[j]);
      }
  }

 private:
  INFTY_HOST_DEVICE static bool is_near(T angle) {
    return angle >= -math::furthest_angle<T> && angle <= math::furthest_angle<T>;
  }
};

}  // namespace detail

/// Sines and cosines, [s sin x, s cos x]: the random features of a Gaussian kernel, if x are random
/// projections [Rahimi and Recht 2007; Peng et al. 2021].
/// @param x  [..., D]   @param s  the factor of all
/// @return   [..., 2 D], the sines first
/// @throws infty::ShapeError unless D >= 1; infty::ValueError for a size above `largest_size`
template <class T, class B>
Variable<T, B> sines_and_cosines(const Variable<T, B>& x, std::type_identity_t<T> s = T(1)) {
  require<ShapeError>(x.shape().rank() >= 1 && x.dim(-1) >= 1, "sines_and_cosines", "x is ",
                      x.shape(), ": it must be [..., D], D >= 1");
  const Index D = x.dim(-1), rows = x.size() / D;
  require_sizes("sines_and_cosines", {{"vectors", rows}, {"2 D", 2 * D}});
  Variable<T, B> y(Tensor<T, B>(x.shape().with(-1, 2 * D)));
  detail::for_each_span<B>(rows, D, 4 * D,
                           detail::SinesAndCosines<T>{x.value().data(), y.value().data(), D, s});
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [x = Unread(x), result, rows,
       D](const Tensor<T, B>& dy) {  // the slope of each is the other, or less it
        const GradTarget<T> target = x.grad_target();
        T* const dx = target.data;
        const bool add = target.add;
        const T *const of_y = dy.data(), *const found = result.data();
        const Index n = D;
        detail::for_each_element<B>(rows, n, [=] INFTY_HOST_DEVICE(Index row, Index j) {
          const Index sine = row * 2 * n + j, cosine = sine + n;
          const T slope = of_y[sine] * found[cosine] - of_y[cosine] * found[sine];
          dx[row * n + j] = add ? dx[row * n + j] + slope : slope;
        });
      },
      Unread(x), result);
}

}  // namespace infty
