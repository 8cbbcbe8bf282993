// SPDX-License-Identifier: MIT
// expect: D::divergence(t, t, t)
#include <infty/memory/ops/density.hpp>

struct Point {
  static double pdf(double, double, double) { return 0; }
  static double mass(double a, double b, double mu, double) { return a <= mu && mu < b ? 1 : 0; }
#ifndef BAD
  template <class T>
  static infty::Expectation<T> divergence(T, T, T) {
    return {0, 0, 0};
  }
#endif
};

void test(const infty::Variable<float>& x) { infty::divergence<Point>(x, 1.f); }
