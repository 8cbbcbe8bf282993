// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <infty/autograd/broadcast.hpp>
#include <infty/autograd/mapped.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/math.hpp>
#include <infty/core/tanh.hpp>

namespace infty {

namespace detail {

struct Minus {
  template <class T>
  INFTY_HOST_DEVICE T operator()(T a, T b) const {
    return a - b;
  }
};
struct Times {
  template <class T>
  INFTY_HOST_DEVICE T operator()(T a, T b) const {
    return a * b;
  }
};

/// Adds dy * factor to the gradient of x, summed over what was repeated of x.
template <class Handle, class T, class B>
void add_product_to_grad(const GradientHandle<Handle, T, B>& x, const Tensor<T, B>& dy,
                         const Tensor<T, B>& factor) {
  if (!(x.shape() == dy.shape() && factor.shape() == dy.shape())) {
    Tensor<T, B> product(dy.shape());
    combine(dy, factor, dy.shape(), Times{}, product.data());
    return add_to_grad(x, sum_to(product, x.shape()));
  }
  const T *const d = dy.data(), *const f = factor.data();
  add_to_grad(x, [=] INFTY_HOST_DEVICE(Index i) { return d[i] * f[i]; });
}

/// @throws infty::ShapeError unless the shapes are equal
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
  INFTY_HOST_DEVICE T slope(T y) const {
    return y * (T(1) - y);
  }
};
struct Softplus {
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x) const {
    return math::softplus(x);
  }
  template <class T>
  INFTY_HOST_DEVICE T slope(T x) const {
    return math::sigmoid(x);
  }
};
struct Relu {
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x) const {
    return x < T(0) ? T(0) : x;  // what is no number stays so
  }
  template <class T>
  INFTY_HOST_DEVICE T slope(T y) const {
    return y > T(0) ? T(1) : T(0);
  }
};
struct Exp {
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x) const {
    return math::exp(x);
  }
  template <class T>
  INFTY_HOST_DEVICE T slope(T y) const {
    return y;
  }
};
struct Tanh {
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x) const {
    return math::tanh(x);
  }
  template <class T>
  INFTY_HOST_DEVICE T slope(T y) const {
    return T(1) - y * y;
  }
};
template <class T>
struct Scale {
  T factor;
  INFTY_HOST_DEVICE T operator()(T x) const { return factor * x; }
};
template <class T>
struct Shift {
  T by;
  INFTY_HOST_DEVICE T operator()(T x) const { return x + by; }
};
template <class T>
struct TakenFrom {
  T whole;
  INFTY_HOST_DEVICE T operator()(T x) const { return whole - x; }
};
template <class T>
struct DividedBy {
  T divisor;
  INFTY_HOST_DEVICE T operator()(T x) const { return x / divisor; }
};

}  // namespace detail

/// Computes 1 / (1 + e^-x), elementwise.
template <class T, class B>
Variable<T, B> sigmoid(const Variable<T, B>& x) {
  return detail::map_keeping_output(x, detail::Sigmoid{});
}

/// Computes log(1 + e^x), elementwise, without overflow.
template <class T, class B>
Variable<T, B> softplus(const Variable<T, B>& x) {
  return detail::map_keeping_input(x, detail::Softplus{});
}

/// Computes max(x, 0), elementwise; the gradient at 0 is 0.
template <class T, class B>
Variable<T, B> relu(const Variable<T, B>& x) {
  return detail::map_keeping_output(x, detail::Relu{});
}

/// e^x, elementwise; infinity where that is too large for T.
template <class T, class B>
Variable<T, B> exp(const Variable<T, B>& x) {
  return detail::map_keeping_output(x, detail::Exp{});
}

/// The hyperbolic tangent, elementwise.
template <class T, class B>
Variable<T, B> tanh(const Variable<T, B>& x) {
  return detail::map_keeping_output(x, detail::Tanh{});
}

/// factor * x, elementwise.
template <class T, class B>
Variable<T, B> scale(const Variable<T, B>& x, T factor) {
  return detail::affine(x, detail::Scale<T>{factor}, detail::Scale<T>{factor});
}

/// a + b; shapes are broadcast as in NumPy and PyTorch, and so below. @throws infty::ShapeError
template <class T, class B>
Variable<T, B> add(const Variable<T, B>& a, const Variable<T, B>& b) {
  const Shape shape = detail::broadcast_shape("add", a.shape(), b.shape());
  Variable<T, B> y((Tensor<T, B>(shape)));
  detail::combine(a.value(), b.value(), shape, detail::Plus{}, y.value().data());
  return record(
      y,
      [a = Unread(a), b = Unread(b)](const Tensor<T, B>& dy) {
        if (a.requires_grad()) detail::add_to_grad(a, detail::sum_to(dy, a.shape()));
        if (b.requires_grad()) detail::add_to_grad(b, detail::sum_to(dy, b.shape()));
      },
      Unread(a), Unread(b));
}

/// a - b. @throws infty::ShapeError
template <class T, class B>
Variable<T, B> subtract(const Variable<T, B>& a, const Variable<T, B>& b) {
  const Shape shape = detail::broadcast_shape("subtract", a.shape(), b.shape());
  Variable<T, B> y((Tensor<T, B>(shape)));
  detail::combine(a.value(), b.value(), shape, detail::Minus{}, y.value().data());
  return record(
      y,
      [a = Unread(a), b = Unread(b)](const Tensor<T, B>& dy) {
        if (a.requires_grad()) detail::add_to_grad(a, detail::sum_to(dy, a.shape()));
        if (b.requires_grad()) {
          const Tensor<T, B> sums = detail::sum_to(dy, b.shape());
          const T* const d = sums.data();
          detail::add_to_grad(b, [=] INFTY_HOST_DEVICE(Index i) { return -d[i]; });
        }
      },
      Unread(a), Unread(b));
}

namespace detail {

/// The value of a product's other factor, which what takes no gradient does not need.
template <class T, class B>
Tensor<T, B> factor_for(const Variable<T, B>& x, const Variable<T, B>& other) {
  return x.requires_grad() ? other.value() : Tensor<T, B>();
}

}  // namespace detail

/// a * b elementwise. @throws infty::ShapeError
template <class T, class B>
Variable<T, B> multiply(const Variable<T, B>& a, const Variable<T, B>& b) {
  const Shape shape = detail::broadcast_shape("multiply", a.shape(), b.shape());
  Variable<T, B> y((Tensor<T, B>(shape)));
  detail::combine(a.value(), b.value(), shape, detail::Times{}, y.value().data());
  const Tensor<T, B> of_a = detail::factor_for(b, a), of_b = detail::factor_for(a, b);
  return record(
      y,
      [a = Unread(a), b = Unread(b), of_a, of_b](const Tensor<T, B>& dy) {
        if (a.requires_grad()) detail::add_product_to_grad(a, dy, of_b);
        if (b.requires_grad()) detail::add_product_to_grad(b, dy, of_a);
      },
      ReadIf(a, of_a), ReadIf(b, of_b));
}

/// a + b, broadcast as by `add`. @throws infty::ShapeError if the shapes do not fit
template <class T, class B>
Variable<T, B> operator+(const Variable<T, B>& a, const Variable<T, B>& b) {
  return add(a, b);
}
/// a - b, broadcast as by `subtract`. @throws infty::ShapeError if the shapes do not fit
template <class T, class B>
Variable<T, B> operator-(const Variable<T, B>& a, const Variable<T, B>& b) {
  return subtract(a, b);
}
/// a * b element by element, broadcast as by `multiply`. @throws infty::ShapeError if the shapes
/// do not fit
template <class T, class B>
Variable<T, B> operator*(const Variable<T, B>& a, const Variable<T, B>& b) {
  return multiply(a, b);
}

/// x + s and its like with a number; the others follow from it, but for x / s, which rounds once.
template <class T, class B>
Variable<T, B> operator+(const Variable<T, B>& x, std::type_identity_t<T> s) {
  return detail::affine(x, detail::Shift<T>{s}, detail::Scale<T>{T(1)});
}
/// s + x, for every element.
template <class T, class B>
Variable<T, B> operator+(std::type_identity_t<T> s, const Variable<T, B>& x) {
  return x + s;
}
/// x - s, for every element.
template <class T, class B>
Variable<T, B> operator-(const Variable<T, B>& x, std::type_identity_t<T> s) {
  return x + -s;
}
/// s - x, for every element.
template <class T, class B>
Variable<T, B> operator-(std::type_identity_t<T> s, const Variable<T, B>& x) {
  return detail::affine(x, detail::TakenFrom<T>{s}, detail::Scale<T>{T(-1)});
}
/// -x, element by element.
template <class T, class B>
Variable<T, B> operator-(const Variable<T, B>& x) {
  return scale(x, T(-1));
}
/// x s, for every element, as `scale`.
template <class T, class B>
Variable<T, B> operator*(const Variable<T, B>& x, std::type_identity_t<T> s) {
  return scale(x, s);
}
/// s x, for every element, as `scale`.
template <class T, class B>
Variable<T, B> operator*(std::type_identity_t<T> s, const Variable<T, B>& x) {
  return scale(x, s);
}
/// x / s, for every element.
template <class T, class B>
Variable<T, B> operator/(const Variable<T, B>& x, std::type_identity_t<T> s) {
  return detail::affine(x, detail::DividedBy<T>{s}, detail::DividedBy<T>{s});
}

}  // namespace infty
