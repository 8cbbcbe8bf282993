// SPDX-License-Identifier: MIT
// expect: psi.centre(j)
#include <infty/memory/ops/density.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/power_basis.hpp>

#ifndef BAD
using Psi = infty::GaussianBasis<float>;
#else
using Psi = infty::PowerBasis<float>;
#endif

void test(const infty::Variable<float>& x, const Psi& psi) { infty::moment_density(x, x, psi, 1); }
