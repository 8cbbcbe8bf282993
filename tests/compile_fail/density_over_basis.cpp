// SPDX-License-Identifier: MIT
// expect: D::expectation_gradient(psi, j, t, t)
#include <infty/signal/density.hpp>
#include <infty/signal/gaussian_basis.hpp>

struct Point {
  static double pdf(double, double, double) { return 0; }
  static double mass(double a, double b, double mu, double) { return a <= mu && mu < b ? 1 : 0; }
#ifndef BAD
  template <class Psi>
  static infty::Expectation<typename Psi::Scalar> expectation_gradient(const Psi& psi,
                                                                       infty::Index j,
                                                                       typename Psi::Scalar mu,
                                                                       typename Psi::Scalar) {
    return {psi(j, mu), 0, 0};
  }
#endif
};

template <class D>
  requires infty::DensityOver<D, infty::GaussianBasis<float>>
void use() {}

void test() { use<Point>(); }
