// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/fwd.hpp>
#include <infty/autograd/tape.hpp>

namespace infty {

// variable.hpp ends by including this, so that who resets a row of a state need not know of tapes;
// tape.hpp begins by including that, so `record` may be declared later, and is found by its
// arguments.
template <class T, class B>
Variable<T, B> Variable<T, B>::without_row(Index row) const {
  const Variable x = *this;
  auto copy = x.value().clone();
  copy.slice(row, row + 1).fill(T(0));
  return record(
      Variable(std::move(copy)),
      [x, row](const TensorType& dy) {
        const Index width = x.size() / x.dim(0), begin = row * width, end = begin + width;
        const T* const d = dy.data();
        T* const dx = x.grad().data();
        B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) {
          if (i < begin || i >= end) dx[i] += d[i];
        });
      },
      Unread<T, B>(x));
}

}  // namespace infty
