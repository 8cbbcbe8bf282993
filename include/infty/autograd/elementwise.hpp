// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/tape.hpp>
#include <infty/core/math.hpp>

namespace infty {

namespace detail {

/// Adds term(i) to the gradient of x, for all elements i.
template <class T, class B, class Term>
void add_to_grad(const Variable<T, B>& x, Term term) {
  const GradTarget<T> to = x.grad_target();
  T* const dx = to.data;
  if (to.add)
    B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) { dx[i] += term(i); });
  else
    B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) { dx[i] = term(i); });
}

/// Adds dy to the gradient of x.
template <class T, class B>
void add_to_grad(const Variable<T, B>& x, const Tensor<T, B>& dy) {
  const T* const d = dy.data();
  add_to_grad(x, [=] INFTY_HOST_DEVICE(Index i) { return d[i]; });
}

/// Adds dy * factor to the gradient of x.
template <class T, class B>
void add_product_to_grad(const Variable<T, B>& x, const Tensor<T, B>& dy,
                         const Tensor<T, B>& factor) {
  const T *const d = dy.data(), *const f = factor.data();
  add_to_grad(x, [=] INFTY_HOST_DEVICE(Index i) { return d[i] * f[i]; });
}

/// y = f(x) elementwise, with dx = dy * slope(x, y).
template <class F, class Slope, class T, class B>
Variable<T, B> elementwise(const Variable<T, B>& x, F f, Slope slope) {
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  const T* const in = x.value().data();
  T* const out = y.value().data();
  B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) { out[i] = f(in[i]); });
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [x, result, slope](const Tensor<T, B>& dy) {
        const T *const px = x.value().data(), *const py = result.data(), *const d = dy.data();
        add_to_grad(x, [=] INFTY_HOST_DEVICE(Index i) { return d[i] * slope(px[i], py[i]); });
      },
      x, result);
}

template <class T, class B>
void require_same_shape(const char* op, const Variable<T, B>& a, const Variable<T, B>& b) {
  require<ShapeError>(a.shape() == b.shape(), op, "a is ", a.shape(), ", b is ", b.shape(),
                      ": the shapes must be equal");
}

struct Sigmoid {
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x) const {
    return math::sigmoid(x);
  }
  template <class T>
  INFTY_HOST_DEVICE T operator()(T, T y) const {
    return y * (T(1) - y);
  }
};
struct Softplus {
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x) const {
    return math::softplus(x);
  }
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x, T) const {
    return math::sigmoid(x);
  }
};
struct Relu {
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x) const {
    return x > T(0) ? x : T(0);
  }
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x, T) const {
    return x > T(0) ? T(1) : T(0);
  }
};
template <class T>
struct Scale {
  T factor;
  INFTY_HOST_DEVICE T operator()(T x) const { return factor * x; }
  INFTY_HOST_DEVICE T operator()(T, T) const { return factor; }
};

}  // namespace detail

/// Computes 1 / (1 + e^-x), elementwise.
template <class T, class B>
Variable<T, B> sigmoid(const Variable<T, B>& x) {
  return detail::elementwise(x, detail::Sigmoid{}, detail::Sigmoid{});
}

/// Computes log(1 + e^x), elementwise, without overflow.
template <class T, class B>
Variable<T, B> softplus(const Variable<T, B>& x) {
  return detail::elementwise(x, detail::Softplus{}, detail::Softplus{});
}

/// Computes max(x, 0), elementwise; the gradient at 0 is 0.
template <class T, class B>
Variable<T, B> relu(const Variable<T, B>& x) {
  return detail::elementwise(x, detail::Relu{}, detail::Relu{});
}

/// factor * x, elementwise.
template <class T, class B>
Variable<T, B> scale(const Variable<T, B>& x, T factor) {
  return detail::elementwise(x, detail::Scale<T>{factor}, detail::Scale<T>{factor});
}

/// a + b of equal shapes. @throws infty::ShapeError
template <class T, class B>
Variable<T, B> add(const Variable<T, B>& a, const Variable<T, B>& b) {
  detail::require_same_shape("add", a, b);
  Variable<T, B> y(Tensor<T, B>(a.shape()));
  const T *const pa = a.value().data(), *const pb = b.value().data();
  T* const out = y.value().data();
  B::for_each(a.size(), [=] INFTY_HOST_DEVICE(Index i) { out[i] = pa[i] + pb[i]; });
  return record(
      y,
      [a, b](const Tensor<T, B>& dy) {
        if (a.requires_grad()) detail::add_to_grad(a, dy);
        if (b.requires_grad()) detail::add_to_grad(b, dy);
      },
      Unread(a), Unread(b));
}

/// a * b elementwise, of equal shapes. @throws infty::ShapeError
template <class T, class B>
Variable<T, B> multiply(const Variable<T, B>& a, const Variable<T, B>& b) {
  detail::require_same_shape("multiply", a, b);
  Variable<T, B> y(Tensor<T, B>(a.shape()));
  const T *const pa = a.value().data(), *const pb = b.value().data();
  T* const out = y.value().data();
  B::for_each(a.size(), [=] INFTY_HOST_DEVICE(Index i) { out[i] = pa[i] * pb[i]; });
  return record(
      y,
      [a, b](const Tensor<T, B>& dy) {
        if (a.requires_grad()) detail::add_product_to_grad(a, dy, b.value());
        if (b.requires_grad()) detail::add_product_to_grad(b, dy, a.value());
      },
      a, b);
}

template <class T, class B>
Variable<T, B> operator+(const Variable<T, B>& a, const Variable<T, B>& b) {
  return add(a, b);
}

template <class T, class B>
Variable<T, B> operator*(const Variable<T, B>& a, const Variable<T, B>& b) {
  return multiply(a, b);
}

}  // namespace infty
