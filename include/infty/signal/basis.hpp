// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <type_traits>

#include <infty/core/config.hpp>

namespace infty {

/// The integrals of (t - origin)^k psi_j(t) over an interval, for k = 0, 1, 2.
template <class T>
struct Integrals {
  T zeroth, first, second;  ///< for k = 0, 1 and 2
};

/// An expectation under a density p, E_p[psi_j] or E_p[log p / prior], and its gradient to the
/// density's location and variance parameter.
template <class T>
struct Expectation {
  T value, d_mu, d_var;  ///< the expectation, and its derivatives by mu and var
};

/// N functions psi_0, ..., psi_{N-1} on the line, of which [0, 1] is the memory: a small value
/// without pointers, because kernels carry it to the device.
template <class P>
concept Basis = std::is_trivially_copyable_v<P> && std::floating_point<typename P::Scalar> &&
                requires(const P& psi, typename P::Scalar t, Index j) {
                  { psi.size() } -> std::same_as<Index>;              // N
                  { psi(j, t) } -> std::same_as<typename P::Scalar>;  // psi_j(t), host and device
                };

/// A basis of bumps, each with a centre and a width, its standard deviation: what the moments of a
/// mixture of its functions are made of.
template <class P>
concept CentredBasis = Basis<P> && requires(const P& psi, Index j) {
  { psi.centre(j) } -> std::same_as<typename P::Scalar>;
  { psi.width(j) } -> std::same_as<typename P::Scalar>;
};

/// A basis that knows its expectation under N(mu, var), in closed form, and its gradient.
template <class P>
concept GaussianExpectationBasis =
    Basis<P> && requires(const P& psi, Index j, typename P::Scalar t) {
      { psi.gaussian_expectation(j, t, t) } -> std::same_as<Expectation<typename P::Scalar>>;
    };

/// One whose functions j and j + widths() share a factor of that expectation, which a kernel then
/// computes once for all of them: `gaussian_expectation_at` is the expectation where it is known.
template <class P>
concept SpreadBasis =
    GaussianExpectationBasis<P> && requires(const P& psi, Index j, typename P::Scalar t) {
      { psi.widths() } -> std::same_as<Index>;
      { psi.inverse_spread(j, t) } -> std::same_as<typename P::Scalar>;  // var
      {
        psi.gaussian_expectation_at(j, t, t)  // mu, inverse_spread(j, var)
      } -> std::same_as<Expectation<typename P::Scalar>>;
    };

/// One whose functions stand in the order of their centres and count for densities near them only:
/// beyond `gaussian_reach(var, tail)` an expectation is less than `tail` times the largest.
template <class P>
concept LocalBasis =
    CentredBasis<P> && GaussianExpectationBasis<P> && requires(const P& psi, typename P::Scalar t) {
      { psi.gaussian_reach(t, t) } -> std::same_as<typename P::Scalar>;
    };

/// A basis that integrates (t - origin)^k psi_j(t) over [a, b] in closed form. The error is to be
/// a few roundings of the integral of |(t - origin)^k psi_j(t)|.
template <class P>
concept IntegrableBasis = Basis<P> && requires(const P& psi, typename P::Scalar t, Index j) {
  { psi.integrals(j, t, t, t) } -> std::same_as<Integrals<typename P::Scalar>>;
};

/// An integrable basis that also knows its derivatives, and where twelve Gauss-Legendre points
/// integrate it to rounding: there, closed forms with a small result of large terms are avoided.
template <class P>
concept SmoothBasis = IntegrableBasis<P> && requires(const P& psi, typename P::Scalar t, Index j) {
  { psi.derivative(j, t) } -> std::same_as<typename P::Scalar>;
  { psi.second_derivative(j, t) } -> std::same_as<typename P::Scalar>;
  { psi.smooth(j, t, t) } -> std::same_as<bool>;  // on [a, b]
};

}  // namespace infty
