// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

namespace infty {

/// Calls f(v, w) for the twelve Gauss-Legendre points v in (-1, 1) and their weights w: the sum of
/// w g(v) is the integral of g over [-1, 1], exactly for polynomials up to degree 23.
template <class T, class F>
INFTY_HOST_DEVICE inline void gauss_legendre(F f) {
  constexpr T point[] = {T(0.9815606342467192506905491L), T(0.9041172563704748566784659L),
                         T(0.7699026741943046870368938L), T(0.5873179542866174472967024L),
                         T(0.3678314989981801937526915L), T(0.1252334085114689154724414L)};
  constexpr T weight[] = {T(0.0471753363865118271946160L), T(0.1069393259953184309602547L),
                          T(0.1600783285433462263346525L), T(0.2031674267230659217490645L),
                          T(0.2334925365383548087608499L), T(0.2491470458134027850005624L)};
  for (int i = 0; i < 6; ++i) {
    f(-point[i], weight[i]);
    f(point[i], weight[i]);
  }
}

}  // namespace infty
