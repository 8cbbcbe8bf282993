// SPDX-License-Identifier: MIT
// expect: D::mass(t, t, t, t)
#include <infty/signal/density.hpp>

struct Uniform {
  static double pdf(double t, double mu, double var) {
    return (t - mu) * (t - mu) <= 3 * var ? 1 : 0;
  }
#ifndef BAD
  static double mass(double a, double b, double, double) { return b - a; }
#endif
};

template <infty::Density D>
void use() {}

void test() { use<Uniform>(); }
