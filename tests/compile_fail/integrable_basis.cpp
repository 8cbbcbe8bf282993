// SPDX-License-Identifier: MIT
// expect: psi.integrals(j, t, t, t)
#include <infty/signal/basis.hpp>

struct Constant {
  using Scalar = double;
  infty::Index size() const { return 1; }
  double operator()(infty::Index, double) const { return 1; }
#ifndef BAD
  infty::Integrals<double> integrals(infty::Index, double a, double b, double origin) const {
    const double u = a - origin, v = b - origin;
    return {v - u, (v * v - u * u) / 2, (v * v * v - u * u * u) / 3};
  }
#endif
};

template <infty::IntegrableBasis Psi>
void use(const Psi&) {}

void test() { use(Constant{}); }
