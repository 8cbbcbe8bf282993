// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/fwd.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/aligned.hpp>

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
      [x = Unread(x), row](const TensorType& dy) {
        const Index width = x.size() / x.dim(0), begin = row * width, end = begin + width;
        const T* const d = dy.data();
        T* const dx = x.grad().data();
        B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) {
          if (i < begin || i >= end) dx[i] += d[i];
        });
      },
      Unread<T, B>(x));
}

template <class T, class B>
Variable<T, B> Variable<T, B>::with_rows(Index at, const Variable& put, Index length) const {
  const Variable x = *this, rows = put;
  TensorType joined = detail::with_rows(x.value(), at, rows.value(), length);
  const Index width = joined.dim(0) > 0 ? joined.size() / joined.dim(0) : 0;
  return record(
      Variable(std::move(joined)),
      [x = Unread(x), rows = Unread(rows), at, width](const TensorType& dy) {
        // The gradients of places [begin, end) to those of `to` from place `from` on: its last ones
        // where it is shorter, for zeros stand in front of it.
        const auto add = [&](const Unread<T, B>& to, Index from, Index begin, Index end) {
          if (!to.requires_grad() || to.size() == 0) return;
          const Index own = to.size() / to.dim(0), skipped = width - own;
          const T* const d = dy.data() + begin * width;
          T* const dx = to.grad().data() + from * own;
          B::for_each((end - begin) * own, [=] INFTY_HOST_DEVICE(Index i) {
            dx[i] += d[i / own * width + skipped + i % own];
          });
        };
        const Index end = at + rows.dim(0);
        add(x, 0, 0, at);
        add(x, end, end, x.dim(0));
        add(rows, 0, at, end);
      },
      Unread<T, B>(x), Unread<T, B>(rows));
}

}  // namespace infty
