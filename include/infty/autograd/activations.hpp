// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/elementwise.hpp>
#include <infty/core/erf.hpp>
#include <infty/core/math.hpp>

namespace infty {

/// How `gelu` is computed: `none` by the error function, `tanh` by the older formula in its place,
/// which models were trained with (GPT-2's among them). PyTorch calls them by the same names.
enum class Approximate { none, tanh };

namespace detail {

/// x Φ(x) with the normal distribution function Φ, and Φ(x) + x φ(x).
struct Gelu {
  template <class T>
  INFTY_HOST_DEVICE static T distribution(T x) {
    return T(0.5) * math::erfc(x * T(-0.70710678118654752440L));
  }
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x) const {
    return x * distribution(x);
  }
  template <class T>
  INFTY_HOST_DEVICE T slope(T x) const {
    const T density = T(0.39894228040143267794L) * math::exp_decay(T(-0.5) * x * x);
    return distribution(x) + x * density;
  }
};

/// x (1 + tanh u) / 2 = x sigmoid(2 u) for u = sqrt(2 / π) (x + 0.044715 x³).
struct TanhGelu {
  static constexpr double twice = 1.59576912160573071176, cubic = 0.044715;

  /// Beyond +-30 the sigmoid is 0 or 1 to the last digit, and x³ might be infinite.
  template <class T>
  INFTY_HOST_DEVICE static T close(T x) {
    return x < T(-30) ? T(-30) : (x > T(30) ? T(30) : x);
  }
  template <class T>
  INFTY_HOST_DEVICE static T share(T x) {
    const T z = close(x);
    return math::sigmoid(T(twice) * z * (T(1) + T(cubic) * z * z));
  }
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x) const {
    return x * share(x);
  }
  template <class T>
  INFTY_HOST_DEVICE T slope(T x) const {
    const T s = share(x), z = close(x);
    return s + z * s * (T(1) - s) * T(twice) * (T(1) + T(3 * cubic) * z * z);
  }
};

struct Silu {
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x) const {
    return x * math::sigmoid(x);
  }
  template <class T>
  INFTY_HOST_DEVICE T slope(T x) const {
    const T s = math::sigmoid(x);
    return s + x * s * (T(1) - s);
  }
};

/// elu(x) + 1: above 0, and e^x where x is below 0.
struct EluPlusOne {
  template <class T>
  INFTY_HOST_DEVICE T operator()(T x) const {
    return x > T(0) ? x + T(1) : math::exp(x);
  }
  template <class T>
  INFTY_HOST_DEVICE T slope(T y) const {  // of x > 0 y is above 1, or 1 by rounding
    return y > T(1) ? T(1) : y;
  }
};

}  // namespace detail

/// x Φ(x), elementwise, with the normal distribution function Φ(x) = erfc(-x / sqrt(2)) / 2; with
/// `Approximate::tanh`, x (1 + tanh(sqrt(2 / π) (x + 0.044715 x³))) / 2
/// [Hendrycks and Gimpel 2016]. As torch.nn.functional.gelu.
template <class T, class B>
Variable<T, B> gelu(const Variable<T, B>& x, Approximate approximate = Approximate::none) {
  if (approximate == Approximate::tanh) return detail::map_keeping_input(x, detail::TanhGelu{});
  return detail::map_keeping_input(x, detail::Gelu{});
}

/// x / (1 + e^-x), elementwise, also called swish [Elfwing et al. 2018].
template <class T, class B>
Variable<T, B> silu(const Variable<T, B>& x) {
  return detail::map_keeping_input(x, detail::Silu{});
}

/// elu(x) + 1, elementwise: x + 1 above 0 and e^x below, the positive features of linear attention
/// [Katharopoulos et al. 2020, Eq. 7].
template <class T, class B>
Variable<T, B> elu_plus_one(const Variable<T, B>& x) {
  return detail::map_keeping_output(x, detail::EluPlusOne{});
}

}  // namespace infty
