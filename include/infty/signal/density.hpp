// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>

#include <infty/core/config.hpp>
#include <infty/signal/basis.hpp>

namespace infty {

/// A probability density on the line with a location mu and a scale parameter var > 0 (sigma^2 of
/// the paper): a type with static functions and no state, taken as a template parameter.
template <class D>
concept Density = requires(double t) {
  { D::pdf(t, t, t) } -> std::same_as<double>;      // p(t; mu, var)
  { D::mass(t, t, t, t) } -> std::same_as<double>;  // of [a, b]; mu, var
};

/// A density that has E_p[psi_j] for this basis in closed form, with its gradient; where only the
/// value is used, a compiler leaves the gradient out.
template <class D, class Psi>
concept DensityOver =
    Density<D> && Basis<Psi> && requires(const Psi& psi, Index j, typename Psi::Scalar t) {
      { D::expectation_gradient(psi, j, t, t) } -> std::same_as<Expectation<typename Psi::Scalar>>;
    };

/// A density that says how far it is from the prior that the memory's regulariser draws to, a
/// density of width sigma0 at the same place: KL(p || prior) >= 0, and its gradient.
template <class D>
concept DensityWithPrior = Density<D> && requires(double t) {
  { D::divergence(t, t, t) } -> std::same_as<Expectation<double>>;  // mu, var, sigma0 > 0
};

/// A density that is made of the scores of all places, p(t) ∝ f(q · k(t)), and not of two numbers:
/// nothing is integrated in closed form, and a memory is read by a quadrature. `GibbsDensity` is
/// one.
template <class D>
concept ScoreDensity = requires { requires D::of_scores; };

}  // namespace infty
