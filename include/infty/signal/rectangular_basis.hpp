// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/normal_integrals.hpp>

namespace infty {

/// Where the last cell of a `RectangularBasis` ends.
enum class LastCell {
  closed,  ///< with t = 1, so that every place of [0, 1] lies in one cell
  open,    ///< in front of it, as in the authors' program: what a write has at t = 1, its last
           ///< vector, is lost
};

/// The indicator functions of the N equal cells [j / N, (j + 1) / N) of [0, 1]: the fit is the mean
/// of what lies in a cell, drawn a little towards zero.
template <class T>
class RectangularBasis {
 public:
  using Scalar = T;

  /// Cuts [0, 1] into n cells of one length.
  /// @throws infty::ValueError if n < 1
  explicit RectangularBasis(Index n, LastCell last = LastCell::closed)
      : size_(n), closed_(last == LastCell::closed) {
    require_at_least("RectangularBasis", "N", n, 1);
  }

  /// N, the number of functions.
  INFTY_HOST_DEVICE Index size() const { return size_; }
  /// Where cell j begins; N is the end of the last.
  INFTY_HOST_DEVICE T begin(Index j) const { return T(j) / T(size_); }
  /// Mean of the even distribution over cell j.
  INFTY_HOST_DEVICE T centre(Index j) const { return (T(j) + T(0.5)) / T(size_); }
  /// Standard deviation of the same.
  INFTY_HOST_DEVICE T width(Index) const {
    return T(0.28867513459481288225457439L) / T(size_);  // 1 / sqrt(12)
  }

  /// psi_j(t)
  INFTY_HOST_DEVICE T operator()(Index j, T t) const {
    const T end = begin(j + 1);
    const bool inside = begin(j) <= t && (t < end || (closed_ && t == end && j + 1 == size_));
    return inside ? T(1) : T(0);
  }

  /// The integrals of (t - origin)^k psi_j(t) over [a, b], k = 0, 1, 2.
  INFTY_HOST_DEVICE Integrals<T> integrals(Index j, T a, T b, T origin = 0) const {
    if (b < a) {
      const Integrals<T> m = integrals(j, b, a, origin);
      return {-m.zeroth, -m.first, -m.second};
    }
    const T from = a > begin(j) ? a : begin(j), to = b < begin(j + 1) ? b : begin(j + 1);
    if (!(from < to)) return {T(0), T(0), T(0)};
    const T length = to - from, u = from - origin, v = to - origin;
    return {length, length * (u + v) / 2, length * (u * u + u * v + v * v) / 3};
  }

  /// E[psi_j] under N(mu, var), the probability of the cell, and its gradient: with z in standard
  /// deviations from mu, the integrals of z phi and of (z² - 1) phi / 2 over the cell.
  INFTY_HOST_DEVICE Expectation<T> gaussian_expectation(Index j, T mu, T var) const {
    const T sigma = std::sqrt(var), length = 1 / (T(size_) * sigma);
    const T low = (begin(j) - mu) / sigma, high = (begin(j + 1) - mu) / sigma;
    const bool mirrored = low + high < 0;  // seen from the end that is nearer to mu
    const T close = mirrored ? -high : low;
    const Integrals<T> m = detail::normal_integrals<T>(close, length, close, T(0));
    return {m.zeroth, (mirrored ? -m.first : m.first) / sigma, (m.second - m.zeroth) / (2 * var)};
  }

  /// The same basis in another scalar type.
  template <class U>
  RectangularBasis<U> cast() const {
    return RectangularBasis<U>(size_, closed_ ? LastCell::closed : LastCell::open);
  }

 private:
  Index size_;
  bool closed_;
};

static_assert(IntegrableBasis<RectangularBasis<float>> && CentredBasis<RectangularBasis<float>> &&
              GaussianExpectationBasis<RectangularBasis<double>>);

}  // namespace infty
