// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>

// What operations that map element by element are made of.
namespace infty::detail {

/// Adds term(i) to the gradient of x, for all elements i.
template <class Handle, class T, class B, class Term>
void add_to_grad(const GradientHandle<Handle, T, B>& x, Term term) {
  const GradTarget<T> to = x.grad_target();
  T* const dx = to.data;
  if (to.add)
    B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) { dx[i] += term(i); });
  else
    B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) { dx[i] = term(i); });
}

/// Adds dy to the gradient of x.
template <class Handle, class T, class B>
void add_to_grad(const GradientHandle<Handle, T, B>& x, const Tensor<T, B>& dy) {
  const T* const d = dy.data();
  add_to_grad(x, [=] INFTY_HOST_DEVICE(Index i) { return d[i]; });
}

/// y = f(x), elementwise.
template <class F, class T, class B>
Variable<T, B> mapped(const Variable<T, B>& x, F f) {
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  const T* const in = x.value().data();
  T* const out = y.value().data();
  B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) { out[i] = f(in[i]); });
  return y;
}

/// y = f(x) elementwise, with dx = dy * f.slope(x): x is kept for the way back.
template <class F, class T, class B>
Variable<T, B> map_keeping_input(const Variable<T, B>& x, F f) {
  return record(
      mapped(x, f),
      [x, f](const Tensor<T, B>& dy) {
        const T *const px = x.value().data(), *const d = dy.data();
        const F of = f;
        add_to_grad(x, [=] INFTY_HOST_DEVICE(Index i) { return d[i] * of.slope(px[i]); });
      },
      x);
}

/// y = f(x) elementwise, with dx = dy * f.slope(y): y is kept for the way back, and x is not.
template <class F, class T, class B>
Variable<T, B> map_keeping_output(const Variable<T, B>& x, F f) {
  const Variable<T, B> y = mapped(x, f);
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [x = Unread(x), result, f](const Tensor<T, B>& dy) {
        const T *const py = result.data(), *const d = dy.data();
        const F of = f;
        add_to_grad(x, [=] INFTY_HOST_DEVICE(Index i) { return d[i] * of.slope(py[i]); });
      },
      Unread(x), result);
}

/// y = f(x) elementwise, with dx = back(dy): no value is kept for the way back.
template <class F, class Back, class T, class B>
Variable<T, B> affine(const Variable<T, B>& x, F f, Back back) {
  return record(
      mapped(x, f),
      [x = Unread(x), back](const Tensor<T, B>& dy) {
        const T* const d = dy.data();
        const Back of = back;
        add_to_grad(x, [=] INFTY_HOST_DEVICE(Index i) { return of(d[i]); });
      },
      Unread(x));
}

}  // namespace infty::detail
