// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace infty::tests {

/// An integral of f, and that of |f|: the scale to measure errors by.
struct Quadrature {
  long double value = 0, scale = 0;

  /// |got - value| / scale: 1e-10 means ten digits of the larger of what is added up.
  double error(double got) const {
    if (scale == 0) return got == 0 ? 0 : 1;
    return static_cast<double>(std::abs(static_cast<long double>(got) - value) / scale);
  }
};

namespace detail {

/// Gauss-Legendre points and weights on [-1, 1] by Newton's iteration, independent of the
/// library's table.
struct GaussRule {
  static constexpr int n = 20;
  long double point[n], weight[n];

  GaussRule() {
    for (int i = 0; i < n; ++i) {
      long double x = std::cos(std::numbers::pi_v<long double> * (i + 0.75L) / (n + 0.5L)), slope;
      for (int step = 0;; ++step) {
        long double p = x, before = 1;
        for (int k = 2; k <= n; ++k) {
          const long double next = ((2 * k - 1) * x * p - (k - 1) * before) / k;
          before = p;
          p = next;
        }
        slope = n * (x * p - before) / (x * x - 1);
        if (step == 10) break;
        x -= p / slope;
      }
      point[i] = x;
      weight[i] = 2 / ((1 - x * x) * slope * slope);
    }
  }
};

template <class F>
Quadrature gauss(const F& f, long double a, long double b) {
  static const GaussRule rule;
  Quadrature sum;
  for (int i = 0; i < GaussRule::n; ++i) {
    const long double y = f((a + b) / 2 + (b - a) / 2 * rule.point[i]);
    sum.value += rule.weight[i] * y * (b - a) / 2;
    sum.scale += rule.weight[i] * std::abs(y) * (b - a) / 2;
  }
  return sum;
}

template <class F>
Quadrature refine(const F& f, long double a, long double b, const Quadrature& whole,
                  long double allowed, int depth) {
  const long double middle = (a + b) / 2;
  const Quadrature left = gauss(f, a, middle), right = gauss(f, middle, b);
  const Quadrature sum{left.value + right.value, left.scale + right.scale};
  // |f| has kinks, so its integral need only be about right.
  if (depth == 0 || (std::abs(sum.value - whole.value) <= allowed &&
                     std::abs(sum.scale - whole.scale) <= 0.01L * sum.scale))
    return sum;
  const Quadrature l = refine(f, a, middle, left, allowed, depth - 1);
  const Quadrature r = refine(f, middle, b, right, allowed, depth - 1);
  return {l.value + r.value, l.scale + r.scale};
}

}  // namespace detail

/// The integral of f over [a, b], a <= b, by adaptive Gauss-Legendre in long double to about 1e-14
/// of the integral of |f|. `breaks` are points near which f changes quickly.
template <class F>
Quadrature integrate(const F& f, double a, double b, const std::vector<double>& breaks = {}) {
  std::vector<long double> ends{a};
  for (const double t : breaks)
    if (t > a && t < b) ends.push_back(t);
  ends.push_back(b);
  std::sort(ends.begin(), ends.end());
  std::vector<Quadrature> coarse;
  long double scale = 0;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    coarse.push_back(detail::gauss(f, ends[i], ends[i + 1]));
    scale += coarse.back().scale;
  }
  Quadrature sum;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    const auto part = detail::refine(f, ends[i], ends[i + 1], coarse[i], 1e-15L * scale, 24);
    sum.value += part.value;
    sum.scale += part.scale;
  }
  return sum;
}

/// Breaks for a function with a peak: c and c +- s / 4, s / 2, s, 2 s, ..., 64 s.
inline std::vector<double> around(double c, double s) {
  std::vector<double> breaks{c};
  for (double d = s / 4; d <= 64 * s; d *= 2) {
    breaks.push_back(c - d);
    breaks.push_back(c + d);
  }
  return breaks;
}

/// Evenly between the two on a logarithmic scale; u is in [0, 1).
inline double logarithmic(double low, double high, double u) {
  return low * std::pow(high / low, u);
}

}  // namespace infty::tests
