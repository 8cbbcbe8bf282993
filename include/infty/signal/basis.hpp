// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <type_traits>

#include <infty/core/config.hpp>

namespace infty {

/// The integrals of (t - origin)^k psi_j(t) over an interval, for k = 0, 1, 2.
template <class T>
struct Integrals {
  T zeroth, first, second;
};

/// N functions psi_0, ..., psi_{N-1} on the line, of which [0, 1] is the memory: a small value
/// without pointers, because kernels carry it to the device.
template <class P>
concept Basis = std::is_trivially_copyable_v<P> && std::floating_point<typename P::Scalar> &&
                requires(const P& psi, typename P::Scalar t, Index j) {
                  { psi.size() } -> std::same_as<Index>;              // N
                  { psi(j, t) } -> std::same_as<typename P::Scalar>;  // psi_j(t), host and device
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
