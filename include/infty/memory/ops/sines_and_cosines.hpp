// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <type_traits>

#include <infty/autograd/tape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/for_each.hpp>

namespace infty {

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
  {
    const T* const from = x.value().data();
    T* const to = y.value().data();
    detail::for_each_element<B>(rows, D, [=] INFTY_HOST_DEVICE(Index row, Index j) {
      to[row * 2 * D + j] = s * std::sin(from[row * D + j]);
      to[row * 2 * D + D + j] = s * std::cos(from[row * D + j]);
    });
  }
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [x, result, rows, D](const Tensor<T, B>& dy) {  // the slope of each is the other, or less it
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
