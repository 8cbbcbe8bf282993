// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/finite.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/contraction.hpp>
#include <infty/signal/low_rank.hpp>
#include <infty/signal/matrix_product.hpp>
#include <infty/signal/overshoot.hpp>
#include <infty/signal/positions.hpp>
#include <infty/signal/recently_used.hpp>
#include <infty/signal/ridge.hpp>
#include <infty/signal/ridge_settings.hpp>

namespace infty {

namespace detail {

/// G with the rows of each vector's places added up: place i is that of vector i length / points.
template <class B>
Tensor<double, B> held_rows(const Tensor<double, B>& G, Index old, Index length) {
  const Index N = G.dim(1), points = G.dim(0) - old;
  Tensor<double, B> held({old + length, N});
  double* const to = held.data();
  const double* const from = G.data();
  for_each_element<B>(old + length, N, [=] INFTY_HOST_DEVICE(Index row, Index j) {
    if (row < old) {
      to[row * N + j] = from[row * N + j];
      return;
    }
    // The places i with i length / points == vector, rounded down.
    const Index vector = row - old, begin = (vector * points + length - 1) / length,
                end = ((vector + 1) * points + length - 1) / length;
    double sum = 0;
    for (Index i = begin; i < end; ++i) sum += from[(old + i) * N + j];
    to[row * N + j] = sum;
  });
  return held;
}

}  // namespace detail

/// The ridge matrices of every length that is written, solved in double when they are first asked
/// for, and kept in T. A handle: copies are cheap and share what is kept. Several threads may ask
/// at once, and wait for each other only while a list is searched, never for a matrix to be solved.
/// One that was moved from throws infty::ValueError when it is asked.
template <class T, class B, Basis Psi>
class RidgeCache {
 public:
  /// Keeps a basis and settings; matrices are solved for when a length is first asked for.
  /// @throws infty::ValueError if a setting is out of its range
  RidgeCache(const Psi& psi, const RidgeSettings& settings)
      : psi_(psi), settings_(settings), kept_(std::make_shared<Kept>()) {
    require(math::is_finite(settings.penalty) && settings.penalty > 0, "RidgeCache", "penalty is ",
            settings.penalty, ": it must be positive and finite");
    require_at_least("RidgeCache", "samples", settings.samples, 1);
    require(math::is_finite(settings.tau) && settings.tau > 0 && settings.tau < 1, "RidgeCache",
            "tau is ", settings.tau, ": it must be in (0, 1)");
    require_at_least("RidgeCache", "entries", settings.entries, 1);
  }

  /// The functions that are fitted.
  const Psi& basis() const { return psi_; }
  /// Penalty, samples, tau and limits as given.
  const RidgeSettings& settings() const { return settings_; }

  /// G [length, N] of a memory's first write. @throws infty::ValueError if length < 1
  Tensor<T, B> first(Index length) const { return first_entry(length).G; }

  /// How that one is fitted. @throws infty::ValueError if length < 1
  WriteLimits first_limits(Index length) const { return first_entry(length).limits; }

  /// The matrices of every later write, where all contract by the same tau.
  /// @throws infty::ValueError if length < 1, or the settings have a contraction
  NextMatrices<T, B> next(Index length) const {
    require(!settings_.contraction, "RidgeCache",
            "the share of the past changes with every write: say how many were written");
    return next_of(length, settings_.tau);
  }

  /// The matrices of a write of `length` vectors behind `written`.
  /// @throws infty::ValueError if one of them is < 1, or the settings' contraction is not in (0, 1)
  NextMatrices<T, B> next(Index length, Index written) const {
    return next_of(length, tau(written, length));
  }

  /// The share of [0, 1] that `written` vectors keep when `length` come.
  /// @throws infty::ValueError if one of them is < 1, or the settings' contraction is not in (0, 1)
  double tau(Index written, Index length) const {
    kept();  // which the settings go with: one that was moved from has none
    require_at_least("RidgeCache", "written", written, 1);
    require_at_least("RidgeCache", "length", length, 1);
    if (!settings_.contraction) return settings_.tau;
    return gridded_share("RidgeCache", settings_.contraction(written, length));
  }

  /// The functions at the even locations where a write samples the past, [samples, N]; evaluated
  /// when first asked for, and kept beside the matrices.
  Tensor<T, B> even_functions() const {
    Kept& all = kept();
    const std::lock_guard lock(all.evaluating);
    if (!all.even_functions) {
      auto made = evaluate(psi_, even_locations<T, B>(settings_.samples));
      // Another thread may read it by another stream: it waits here until it is made.
      require<NonFiniteError>(detail::all_finite(made), "RidgeCache",
                              "a basis function is not finite in [0, 1]");
      all.even_functions = std::move(made);
    }
    return *all.even_functions;
  }

  /// Number of matrices that are kept now.
  std::size_t entries() const { return kept().first.size() + kept().next.size(); }
  /// Bytes of these.
  std::size_t bytes() const { return kept().first.bytes() + kept().next.bytes(); }

  /// What tells its matrices from those of other caches; copies share it.
  std::shared_ptr<const void> identity() const { return kept_; }

 private:
  using Key = std::pair<Index, double>;  ///< length and tau
  struct First {
    Tensor<T, B> G;
    WriteLimits limits;
  };
  struct Kept {
    detail::RecentlyUsed<Index, First> first;
    detail::RecentlyUsed<Key, NextMatrices<T, B>> next;
    std::mutex evaluating;
    std::optional<Tensor<T, B>> even_functions;
  };
  struct Fit {
    Tensor<double, B> G;  ///< [samples if any + length, N]
    WriteLimits limits;
    double rounding = 0;  ///< what Λ has for it, twice what sums of n and of N terms can come to
  };

  NextMatrices<T, B> next_of(Index length, double tau) const {
    return kept().next.get(
        Key{length, tau}, settings_, [&] { return make_next(length, tau); },
        [](const NextMatrices<T, B>& m) {
          return m.next_old.bytes() + m.next_new.bytes() + m.carry.bytes() + m.thin_new.bytes() +
                 m.thin_carry.bytes();
        });
  }

  First first_entry(Index length) const {
    return kept().first.get(
        length, settings_,
        [&] {
          const auto [G, limits, rounding] = fitted(
              0, length, first_positions(points_for(length, settings_.tau), settings_.midpoints));
          return First{rounded(G), limits};
        },
        [](const First& f) { return f.G.bytes(); });
  }

  /// Places that so many vectors are held over.
  Index points_for(Index length, double tau) const {
    return settings_.hold ? held_points(length, settings_.samples, tau) : length;
  }

  /// The fit of `old` samples and of `length` vectors, each of them held over several of the places
  /// behind the samples' if there are more.
  Fit fitted(Index old, Index length, const Positions& positions) const {
    const Index N = psi_.size(), points = static_cast<Index>(positions.inside.size()) - old;
    Fit fit;
    fit.limits = {.points = points, .penalty = settings_.penalty};
    for (int attempt = 0;; ++attempt) {
      fit.G = ridge_matrix<B>(psi_, positions, fit.limits.penalty);
      if (points > length) fit.G = detail::held_rows(fit.G, old, length);
      if (!settings_.bounded) return fit;
      const FitSize size = fit_size(psi_, fit.G);
      fit.rounding = static_cast<double>(fit.G.dim(0) + N) *
                     static_cast<double>(std::numeric_limits<T>::epsilon()) * size.reach;
      fit.limits.lebesgue = size.lebesgue + fit.rounding;
      fit.limits.largest = largest_for(size.reach);
      if (fit.limits.lebesgue <= most_lebesgue) return fit;
      require(attempt < 400, "RidgeCache", "the fit of ", length,
              " vectors cannot be bounded: no penalty up to ", fit.limits.penalty, " does it");
      fit.limits.penalty *= attempt < 64 ? 2 : 64;
    }
  }

  Kept& kept() const {
    require(kept_ != nullptr, "RidgeCache", "it was moved from");
    return *kept_;
  }

  NextMatrices<T, B> make_next(Index length, double tau) const {
    const Index samples = settings_.samples;
    auto [G, limits, rounding] =
        fitted(samples, length, next_positions(points_for(length, tau), samples, tau));
    const auto old = G.slice(0, samples), added = G.slice(samples, samples + length);
    const auto even = even_locations<double, B>(samples).to_vector();
    const auto F = detail::design_matrix<B>(psi_, even.data(), samples);  // [N, samples]
    const auto thin_new = thin(added, rounding, limits);
    if (settings_.bounded) {
      // Beyond, sampling costs little beside the new vectors themselves. Where the share changes
      // no write follows its like, and nothing is proven of products.
      constexpr Index longest = 16;
      RunSize run;
      if (length <= longest * samples && !settings_.contraction)
        run = run_size(detail::matrix_product(F, true, old, true),
                       detail::matrix_product(F, true, added, true));
      limits.of_new = run.of_new;
      limits.of_old = run.of_old;
      limits.multiplies =
          limits.run((std::max)(limits.lebesgue, first_entry(length).limits.lebesgue)) <= most_run;
    }
    auto A = detail::matrix_product(old, true, F, true);
    const auto carry = rounded(A);
    const auto thin_carry = limits.multiplies ? detail::low_rank_leaving<T>(A) : LowRank<T, B>();
    return {rounded(old), rounded(added), carry, limits, thin_new, thin_carry};
  }

  /// Factors of Gᵀ of new vectors; of a bounded cache only where their rounding, the right one's of
  /// n terms, as the signal has it, and the left one's of r, is no more than Λ has room for.
  LowRank<T, B> thin(const Tensor<double, B>& G, double rounding, WriteLimits& limits) const {
    auto rest = detail::transposed(G);
    auto factors = detail::low_rank_leaving<T>(rest);
    rest = {};
    if (!settings_.bounded || factors.rank() == 0) return factors;
    const Index r = factors.rank(), n = G.dim(0);
    auto weighed = detail::transposed(factors.left.template cast<double>());  // [r, N]
    const auto gains = detail::absolute_row_sums(factors.right.template cast<double>());
    detail::scale_rows(weighed, gains);
    const FitSize size = fit_size(psi_, weighed);
    const double of_factors =
        static_cast<double>(std::numeric_limits<T>::epsilon()) *
        (static_cast<double>(n) * size.lebesgue + static_cast<double>(r) * size.reach);
    if (!(of_factors <= rounding)) return {};
    limits.largest = (std::min)(limits.largest, largest_for(size.reach));
    return factors;
  }

  /// How large vectors can be for sums of `reach` times as much to stay finite.
  static double largest_for(double reach) {
    return static_cast<double>((std::numeric_limits<T>::max)()) / (4 * most_run * (1 + reach));
  }

  /// @throws infty::ValueError for numbers beyond the range of T
  static Tensor<T, B> rounded(const Tensor<double, B>& G) {
    auto out = G.template cast<T>();
    require(
        detail::all_finite(out), "RidgeCache",
        "the matrix of a fit has numbers that the scalar cannot hold: the penalty is too small");
    return out;
  }

  Psi psi_;
  RidgeSettings settings_;
  std::shared_ptr<Kept> kept_;
};

}  // namespace infty
