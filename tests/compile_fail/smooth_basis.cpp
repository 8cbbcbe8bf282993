// SPDX-License-Identifier: MIT
// expect: psi.second_derivative(j, t)
#include <infty/signal/basis.hpp>

struct Constant {
  using Scalar = double;
  infty::Index size() const { return 1; }
  double operator()(infty::Index, double) const { return 1; }
  infty::Integrals<double> integrals(infty::Index, double a, double b, double origin) const {
    const double u = a - origin, v = b - origin;
    return {v - u, (v * v - u * u) / 2, (v * v * v - u * u * u) / 3};
  }
  double derivative(infty::Index, double) const { return 0; }
#ifndef BAD
  double second_derivative(infty::Index, double) const { return 0; }
#endif
  bool smooth(infty::Index, double, double) const { return true; }
};

template <infty::SmoothBasis Psi>
void use(const Psi&) {}

void test() { use(Constant{}); }
