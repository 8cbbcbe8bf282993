// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <type_traits>

#include <infty/memory/long_term_basis.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/density.hpp>

namespace infty::detail {

/// What a long-term memory asks of a density and a basis, which may be a user's own: instantiated
/// for types that lack something, the compiler says what.
template <class T, class D, class Psi>
struct LongTermNeeds {
  static_assert(
      std::is_trivially_copyable_v<Psi>,
      "LongTermMemory: the basis is not trivially copyable, so that no kernel could carry "
      "it: it may hold numbers, and no vectors, strings or virtual functions");
  static_assert(
      requires { requires std::same_as<typename Psi::Scalar, T>; },
      "LongTermMemory: the basis has no Scalar that is the memory's");
  static_assert(
      requires(const Psi& psi) {
        { psi.size() } -> std::same_as<Index>;
      }, "LongTermMemory: the basis has no `Index size() const`, the number of its functions");
  static_assert(
      requires(const Psi& psi, T t, Index j) {
        { psi(j, t) } -> std::same_as<T>;
      },
      "LongTermMemory: the basis has no `Scalar operator()(Index j, Scalar t) const`, its "
      "psi_j(t)");
  static_assert(ConfiguredBasis<Psi> || !Basis<Psi>,
                "LongTermMemory: the basis cannot be made of N, of N and widths, or of N and its "
                "own Config");
  static_assert(
      ScoreDensity<D> || requires(double t) {
        { D::pdf(t, t, t) } -> std::same_as<double>;
      }, "LongTermMemory: the density has no `static T pdf(T t, T mu, T var)`, T float and double");
  static_assert(
      ScoreDensity<D> ||
          requires(double t) {
            { D::mass(t, t, t, t) } -> std::same_as<double>;
          },
      "LongTermMemory: the density has no `static T mass(T a, T b, T mu, T var)`, the probability "
      "of [a, b], T float and double");
  static_assert(
      DensityOver<D, Psi> || !Density<D> || !Basis<Psi>,
      "LongTermMemory: the density has no expectation of the basis's functions: "
      "GaussianDensity wants a basis with `gaussian_expectation(j, mu, var)`, "
      "TruncatedParabola one with `integrals(j, a, b, origin)`, a density of your own has "
      "`static Expectation<Scalar> expectation_gradient(psi, j, mu, var)`");
};

}  // namespace infty::detail
