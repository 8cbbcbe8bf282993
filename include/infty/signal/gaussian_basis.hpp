// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <ranges>
#include <span>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/normal_integrals.hpp>

namespace infty {

/// N normalised Gaussian radial basis functions psi_j(t) = N(t; centre_j, width_j^2)
/// [Martins et al. 2022, section 3.1]: every width stands at each of N / widths centres, evenly
/// from 0 to 1 with both ends, centre by centre, or by steps from a place on. A single centre is 0.
template <class T>
class GaussianBasis {
 public:
  using Scalar = T;
  static constexpr Index max_widths = 8;  ///< most widths that one basis can have

  /// Makes a basis of n functions, every width at each of n / widths centres, evenly from 0 to 1
  /// [Martins et al. 2022, App. C].
  /// @param n       N >= 1, a multiple of the number of widths
  /// @param widths  1 to 8 standard deviations, in units of the signal's length [0, 1]
  /// @throws infty::ValueError if either is out of its range
  template <std::ranges::contiguous_range Widths>
  GaussianBasis(Index n, const Widths& widths) {
    assign(n, std::ranges::data(widths), static_cast<Index>(std::ranges::size(widths)));
  }
  /// Makes a basis whose centres are first, first + step, first + 2 step, ...
  /// @throws infty::ValueError as above, and unless T has all centres finite and a step > 0
  template <std::ranges::contiguous_range Widths>
  GaussianBasis(Index n, const Widths& widths, double first, double step)
      : GaussianBasis(n, widths) {
    first_ = static_cast<T>(first);
    step_ = static_cast<T>(step);
    parts_ = 1;
    require(math::is_finite(first_) && step_ > 0 && math::is_finite(centre(n - 1)), "GaussianBasis",
            "centres from ", first, " on by steps of ", step,
            ": all of them must be finite, and the step positive");
  }
  /// Makes a basis of n functions from widths in braces, as from a range.
  /// @throws infty::ValueError if n or the widths are out of their range
  GaussianBasis(Index n, std::initializer_list<double> widths) {
    assign(n, widths.begin(), static_cast<Index>(widths.size()));
  }

  /// Returns N, the number of functions.
  INFTY_HOST_DEVICE Index size() const { return size_; }
  /// Returns the number of widths at each centre.
  INFTY_HOST_DEVICE Index widths() const { return widths_; }
  /// Returns the standard deviation of psi_j.
  INFTY_HOST_DEVICE T width(Index j) const { return width_[j % widths_]; }
  /// Returns where psi_j is highest.
  INFTY_HOST_DEVICE T centre(Index j) const { return first_ + T(j / widths_) * step_ / parts_; }

  /// Computes psi_j(t).
  INFTY_HOST_DEVICE T operator()(Index j, T t) const {
    const T s = width(j);
    return detail::normal_pdf((t - centre(j)) / s) / s;
  }
  /// Computes psi_j'(t).
  INFTY_HOST_DEVICE T derivative(Index j, T t) const {
    const T s = width(j), z = (t - centre(j)) / s;
    const T value = detail::normal_pdf(z) / s;
    return -in_sight(z, value) / s * value;
  }
  /// Computes psi_j''(t).
  INFTY_HOST_DEVICE T second_derivative(Index j, T t) const {
    const T s = width(j), z = (t - centre(j)) / s;
    const T value = detail::normal_pdf(z) / s, seen = in_sight(z, value);
    return (seen * seen - 1) / (s * s) * value;
  }
  /// Returns whether Gauss-Legendre integrates psi_j over [a, b] to rounding.
  INFTY_HOST_DEVICE bool smooth(Index j, T a, T b) const {
    const T s = width(j);
    return detail::normal_smooth((a - centre(j)) / s, (b - a) / s);
  }

  /// Computes the integrals of (t - origin)^k psi_j(t) over [a, b], k = 0, 1, 2; precise in the far
  /// tails, on tiny intervals and for infinite ends alike. Swapped ends change the sign.
  INFTY_HOST_DEVICE Integrals<T> integrals(Index j, T a, T b, T origin = 0) const {
    if (b < a) {
      const Integrals<T> m = integrals(j, b, a, origin);
      return {-m.zeroth, -m.first, -m.second};
    }
    const T c = centre(j), s = width(j), length = (b - a) / s;
    // Seen from the end that is nearer to the centre, looking away from it.
    const bool mirrored = (a - c) + (b - c) < 0;
    const T side = mirrored ? -s : s, end = mirrored ? b : a;
    const Integrals<T> m = detail::normal_integrals<T>((end - c) / side, length,
                                                       (end - origin) / side, (c - origin) / side);
    return {m.zeroth, side * m.first, side * side * m.second};
  }

  /// E[psi_j] under N(mu, var) and its gradient. The product of two Gaussians integrates to a
  /// Gaussian: N(mu; centre, width² + var).
  INFTY_HOST_DEVICE Expectation<T> gaussian_expectation(Index j, T mu, T var) const {
    return gaussian_expectation_at(j, mu, inverse_spread(j, var));
  }
  /// 1 / sqrt(width² + var), what the expectations of all functions of psi_j's width share.
  INFTY_HOST_DEVICE T inverse_spread(Index j, T var) const {
    const T s = width(j);
    return 1 / std::sqrt(s * s + var);
  }
  /// `gaussian_expectation` where the inverse spread r is known.
  INFTY_HOST_DEVICE Expectation<T> gaussian_expectation_at(Index j, T mu, T r) const {
    return gaussian_expectation_about(centre(j), mu, r);
  }
  /// Computes the same of a function whose centre c is known, too.
  INFTY_HOST_DEVICE static Expectation<T> gaussian_expectation_about(T c, T mu, T r) {
    constexpr T peak = T(0.39894228040143267793994606L);  // 1 / sqrt(2 pi)
    const T z = (mu - c) * r;
    const T value = math::exp_decay(T(-0.5) * z * z) * (peak * r);
    const T seen = in_sight(z, value);
    return {value, -value * seen * r, value * (seen * seen - 1) * r * r / 2};
  }
  /// How far from mu a centre must lie for the expectation to be `tail` times its largest value,
  /// for the widest functions; with tail in (0, 1).
  INFTY_HOST_DEVICE T gaussian_reach(T var, T tail) const {
    T widest = 0;
    for (Index j = 0; j < widths_; ++j) widest = width(j) > widest ? width(j) : widest;
    return std::sqrt(-2 * std::log(tail) * (widest * widest + var));
  }

  /// The same basis in another scalar type.
  template <class U>
  GaussianBasis<U> cast() const {
    GaussianBasis<U> other(size_, std::span(width_, static_cast<std::size_t>(widths_)));
    other.first_ = static_cast<U>(first_);
    other.step_ = static_cast<U>(step_);
    other.parts_ = static_cast<U>(parts_);
    return other;
  }

 private:
  /// z, or 0 where the function has no value left: far away its square is infinite, times 0 NaN.
  INFTY_HOST_DEVICE static T in_sight(T z, T value) { return value > T(0) ? z : T(0); }

  template <class W>
  void assign(Index n, const W* widths, Index count) {
    require(count >= 1 && count <= max_widths, "GaussianBasis", count,
            " widths: there must be 1 to ", max_widths);
    require(n >= 1 && n % count == 0, "GaussianBasis", "N is ", n, " with ", count,
            " widths: it must be a positive multiple of their number");
    for (Index i = 0; i < count; ++i) {
      const T width = static_cast<T>(widths[i]);
      const T square = width * width;
      require(math::is_finite(width) && width > 0 && math::is_finite(square) &&
                  square >= (std::numeric_limits<T>::min)(),
              "GaussianBasis", "width ", i, " is ", widths[i],
              ": it must be positive and finite, and its square neither overflow nor vanish");
      width_[i] = width;
    }
    size_ = n;
    widths_ = count;
    parts_ = n == count ? T(1) : T(n / count - 1);
  }

  template <class U>
  friend class GaussianBasis;

  Index size_ = 0, widths_ = 0;
  // Centre i is at first + i step / parts. Parts are the number of the last centre, or 1.
  T first_ = 0, step_ = 1, parts_ = 1;
  T width_[max_widths] = {};
};

static_assert(SmoothBasis<GaussianBasis<float>> && SpreadBasis<GaussianBasis<float>> &&
              LocalBasis<GaussianBasis<double>>);

}  // namespace infty
