// SPDX-License-Identifier: MIT
// expect: psi(j, t)
#include <infty/signal/basis.hpp>

struct Steps {
  using Scalar = double;
  infty::Index size() const { return 4; }
#ifndef BAD
  double operator()(infty::Index j, double t) const { return static_cast<double>(j) <= 4 * t; }
#endif
};

template <infty::Basis Psi>
void use(const Psi&) {}

void test() { use(Steps{}); }
