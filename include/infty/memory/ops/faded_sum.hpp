// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/row.hpp>

namespace infty {

namespace detail {

/// to (+)= all each[row] d, where each is 1 if there is none.
template <class T>
struct FadedBack {
  const T *d, *each;
  T* to;
  Index size;
  T all;
  bool add;

  INFTY_HOST_DEVICE void operator()(Index row, Index i) const {
    const Index at = row * size + i;
    const T flows = (each ? all * each[row] : all) * d[at];
    to[at] = add ? to[at] + flows : flows;
  }
};

}  // namespace detail

/// Computes factor x + sign y, with a factor for each matrix: what is left of the old, and the new.
/// @param factor  [..., 1, 1]   @param x, y  [..., m, n]   @param sign  of y, a number
/// @return        [..., m, n]
/// @throws infty::ShapeError if the shapes do not fit
template <class T, class B>
Variable<T, B> faded_sum(const Variable<T, B>& factor, const Variable<T, B>& x,
                         const Variable<T, B>& y, T sign = T(1)) {
  require<ShapeError>(x.shape().rank() >= 2 && y.shape() == x.shape() &&
                          factor.shape() == x.shape().with(-1, 1).with(-2, 1),
                      "faded_sum", "factor is ", factor.shape(), ", x ", x.shape(), ", y ",
                      y.shape(), ": they must be [..., 1, 1] and twice [..., m, n]");
  const Index rows = factor.size(), size = x.dim(-1) * x.dim(-2);
  Variable<T, B> sum(Tensor<T, B>(x.shape()));
  {
    const T *const f = factor.value().data(), *const a = x.value().data(),
                   *const b = y.value().data();
    T* const out = sum.value().data();
    detail::for_each_element<B>(rows, size, [=] INFTY_HOST_DEVICE(Index row, Index i) {
      const Index at = row * size + i;
      out[at] = f[row] * a[at] + sign * b[at];
    });
  }
  return record(
      sum,
      [factor, x, y = Unread(y), sign, rows, size](const Tensor<T, B>& dsum) {
        const T *const d = dsum.data(), *const f = factor.value().data(),
                       *const a = x.value().data();
        const Index n = size;
        const auto flow_to = [&](const auto& input, const T* each, T all) {
          const auto to = input.grad_target();
          detail::for_each_element<B>(rows, n,
                                      detail::FadedBack<T>{d, each, to.data, n, all, to.add});
        };
        if (x.requires_grad()) flow_to(x, f, T(1));
        if (y.requires_grad()) flow_to(y, nullptr, sign);
        if (!factor.requires_grad()) return;
        T* const df = factor.grad().data();
        B::for_each_row(rows, n, [=] INFTY_HOST_DEVICE(Index row) {
          df[row] +=
              detail::row_sum<T>(n, [=](Index i) { return d[row * n + i] * a[row * n + i]; });
        });
      },
      factor, x, Unread(y));
}

}  // namespace infty
