// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>

// Gaussians of one width w that stand closer than half of it say little that fewer could not. A
// Gaussian is one of half its variance, smoothed by another,
//   N(t; c, w²) = ∫ N(t; s, w²/2) N(s; c, w²/2) ds,
// and the trapezoid rule turns the integral into a sum over places s_k, h apart:
//   psi_j(t) = sum_k C_kj phi_k(t),  phi_k(t) = N(t; s_k, w²/2),  C_kj = h N(s_k; c_j, w²/2).
// The integrand is N(t; c, w²) times a Gaussian of variance v = w²/4 about (t + c) / 2, so that the
// rule errs by 2 exp(-2 pi² v / h²) of psi_j(t) itself, in its tails too, and no sum has terms of
// both signs. Under a density N(mu, sigma²) it is the same with w²/2 + sigma² for the first
// variance: v is larger then, but below w²/2, and stands between mu and c.

namespace infty {

/// Functions phi that others are sums of, psi = Cᵀ phi.
template <class T, class B>
struct FewerGaussians {
  GaussianBasis<T> functions;  ///< phi, M of them
  Tensor<T, B> weights;        ///< C, [M, n], none negative
};

namespace detail {

/// Whether reads by such a density of such a basis may go by fewer functions.
template <class Density, class Psi>
inline constexpr bool can_have_fewer = false;
template <class T>
inline constexpr bool can_have_fewer<GaussianDensity, GaussianBasis<T>> = true;

/// Places first, first + 1, ..., last, times a step.
struct EvenPlaces {
  double step, first, last;

  double count() const { return last - first + 1; }
};

/// Those of the functions that all functions of a width w are sums of, with centres in [low, high],
/// within a share of each.
inline EvenPlaces places_of_fewer(double w, double low, double high, double share) {
  constexpr double pi = 3.14159265358979323846;
  // 2 exp(-2 pi² v / h²) = share where v is least, and a tail of as much on each side where it is
  // not.
  const double widest = w * pi / std::sqrt(2 * std::log(2 / share)),
               reach = w * std::sqrt(-std::log(share));
  // Of few digits, so that places are the same in all types.
  int exponent = 0;
  const double digits = std::floor(std::ldexp(std::frexp(widest, &exponent), 8)),
               step = std::ldexp(digits, exponent - 8);
  return {step, std::floor((low - reach) / step), std::ceil((high + reach) / step)};
}

}  // namespace detail

/// Finds, for each width of a Gaussian basis, the fewest Gaussians by even places that all
/// functions of that width are sums of: to half a rounding of psi_j(t) for t in [0, 1], and of
/// E_p[psi_j] for p = N(mu, sigma²) with mu in [0, 1], where these are not so small that weights
/// have no such numbers (`math::without_tail`). How many does not depend on N.
/// @param psi  with centres from 0 to 1
/// @return  for width i, of functions i, i + widths, i + 2 widths, ...; nothing if all these are
/// not fewer than N
template <class B, class T>
std::vector<FewerGaussians<T, B>> fewer_gaussians(const GaussianBasis<T>& psi) {
  constexpr double share = static_cast<double>(std::numeric_limits<T>::epsilon()) / 4;
  const Index widths = psi.widths(), n = psi.size() / widths;
  const auto exact = psi.template cast<double>();
  std::vector<detail::EvenPlaces> places;
  double count = 0;
  for (Index i = 0; i < widths; ++i) {
    places.push_back(detail::places_of_fewer(exact.width(i), exact.centre(0),
                                             exact.centre(psi.size() - 1), share));
    count += places.back().count();
  }
  std::vector<FewerGaussians<T, B>> all;
  if (!(count < static_cast<double>(psi.size()))) return all;
  for (Index i = 0; i < widths; ++i) {
    const auto& [h, first, last] = places[static_cast<std::size_t>(i)];
    const double narrow[] = {exact.width(i) / std::sqrt(2.0)}, step = h;
    const auto M = static_cast<Index>(last - first) + 1;
    const GaussianBasis<double> phi(M, narrow, first * h, h);
    Tensor<T, B> weights({M, n});
    T* const to = weights.data();
    detail::for_each_element<B>(M, n, [=] INFTY_HOST_DEVICE(Index k, Index j) {
      to[k * n + j] = math::without_tail<T>(step * phi(k, exact.centre(j * widths)));
    });
    all.push_back({phi.template cast<T>(), std::move(weights)});
  }
  return all;
}

}  // namespace infty
