// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/core/config.hpp>
#include <infty/memory/long_term_config.hpp>
#include <infty/signal/basis.hpp>

namespace infty {

/// The constants of a long-term memory over a basis that has constants of its own beside N and
/// widths: `{{.basis = 32}, {.degree = 3}}`.
template <class BasisConfig>
struct LongTermConfigWith : LongTermConfig {
  BasisConfig of_basis = {};  ///< the basis's own constants
};

namespace detail {

template <class Psi>
concept HasConfig = requires { typename Psi::Config; };
template <class Psi>
concept MadeOfConfig = HasConfig<Psi> && requires(Index n, const typename Psi::Config& config) {
  Psi{n, config};
};
template <class Psi>
concept MadeOfWidths = requires(Index n, const std::vector<double>& widths) {
  Psi{n, widths};
};
template <class Psi>
concept MadeOfSize = requires(Index n) { Psi{n}; };

template <class Psi>
struct LongTermConfigOver {
  using type = LongTermConfig;
};
template <HasConfig Psi>
struct LongTermConfigOver<Psi> {
  using type = LongTermConfigWith<typename Psi::Config>;
};

}  // namespace detail

/// The configuration of a long-term memory over this basis: `LongTermConfig`, and where the basis
/// has a `Config`, that too.
template <class Psi>
using LongTermConfigFor = typename detail::LongTermConfigOver<Psi>::type;

/// A basis that a long-term memory can make of its configuration: of N and the basis's own
/// `Config`, if it has one; else of N and the widths; else of N alone.
template <class Psi>
concept ConfiguredBasis =
    Basis<Psi> &&
    (detail::MadeOfConfig<Psi> ||
     (!detail::HasConfig<Psi> && (detail::MadeOfWidths<Psi> || detail::MadeOfSize<Psi>)));

/// The N functions that a configuration describes. @throws what the basis throws
template <ConfiguredBasis Psi>
Psi basis_of(const LongTermConfigFor<Psi>& config) {
  if constexpr (detail::HasConfig<Psi>)
    return Psi{config.basis, config.of_basis};
  else if constexpr (detail::MadeOfWidths<Psi>)
    return Psi{config.basis, config.widths};
  else if constexpr (requires { Psi{config.basis, config.last_cell}; })
    return Psi{config.basis, config.last_cell};
  else
    return Psi{config.basis};
}

}  // namespace infty
