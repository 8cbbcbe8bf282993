// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/elementwise.hpp>
#include <infty/core/fold.hpp>

namespace infty {

/// Computes factor * (sum of all elements) -> scalar.
template <class T, class B>
Variable<T, B> sum(const Variable<T, B>& x, T factor = T(1)) {
  const T* const in = x.value().data();
  Variable<T, B> total(Tensor<T, B>(Shape{}));
  T* const to = total.value().data();
  B::reduce_into(
      x.size(), T(0), detail::Plus{}, [=] INFTY_HOST_DEVICE(Index i) { return in[i]; }, to);
  if (factor != T(1)) B::for_each(1, [=] INFTY_HOST_DEVICE(Index) { *to *= factor; });
  return record(
      total,
      [x = Unread(x), factor](const Tensor<T, B>& dy) {
        const T* const d = dy.data();
        const T f = factor;
        detail::add_to_grad(x, [=] INFTY_HOST_DEVICE(Index) { return f * *d; });
      },
      Unread(x));
}

/// Computes the mean of all elements -> scalar. @throws infty::ShapeError for an empty tensor
template <class T, class B>
Variable<T, B> mean(const Variable<T, B>& x) {
  require<ShapeError>(x.size() > 0, "mean", "x is ", x.shape(), ": it must not be empty");
  return sum(x, T(1) / static_cast<T>(x.size()));
}

}  // namespace infty
