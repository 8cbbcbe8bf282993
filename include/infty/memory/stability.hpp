// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/eigen/default.hpp>
#include <infty/memory/long_term_basis.hpp>
#include <infty/memory/long_term_config.hpp>
#include <infty/memory/resampling.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/overshoot.hpp>
#include <infty/signal/ridge_cache.hpp>

namespace infty {

/// How a long-term memory behaves under writes of one length, and what is done about it; see
/// docs/stability.md.
struct Stability {
  Index points = 0;     ///< places that the vectors are held over; more than they are: held
  double penalty = 0;   ///< λ; larger than the configuration's: raised until Λ is small enough
  double radius = 0;    ///< of A in B' = A B + Gᵀ X, which alone lets a signal grow from 1 on
  double lebesgue = 0;  ///< Λ, how far a fit exceeds what is fitted
  bool multiplies = false;  ///< even writes in a row are one matrix each; else sampled and clamped
  /// |X(t)| <= bound times the largest |x| ever written, behind a write of this length, whatever
  /// went before; infinite without `LongTermConfig::bounded`.
  double bound = math::infinity<double>;
};

namespace detail {

/// How many vectors a write of `length` comes behind.
inline Index before(Index written, Index length) {
  require_at_least("stability", "written", written, 0);
  return written == 0 ? length : written;
}

template <ConfiguredBasis Psi>
RidgeCache<double, EigenBackend, Psi> exact_ridge(const LongTermConfigFor<Psi>& config) {
  config.validate();
  return {basis_of<Psi>(config), config.ridge_settings()};
}

/// The integral over [0, 1] of the squares of signals, by the trapezoidal rule.
class Energy {
 public:
  template <class Psi>
  explicit Energy(const Psi& psi) {
    const auto places = probe_places(psi);
    const auto count = static_cast<Index>(places.size());
    weighed_ = design_matrix<EigenBackend>(psi, places.data(), count);  // [N, P]
    for (Index i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double below = i > 0 ? places[at] - places[at - 1] : 0,
                   above = i + 1 < count ? places[at + 1] - places[at] : 0;
      for (Index j = 0; j < weighed_.dim(0); ++j)
        weighed_.data()[j * count + i] *= std::sqrt((below + above) / 2);
    }
  }

  /// Of all signals [L, N] together.
  double operator()(const Tensor<double>& signals) const {
    const auto values = matrix_product(signals, false, weighed_, false);
    double energy = 0;
    for (const double v : values.to_vector()) energy += v * v;
    return energy;
  }

 private:
  Tensor<double> weighed_;
};

}  // namespace detail

/// Finds how a memory behaves under writes of `length` vectors, both the first and later ones. Of a
/// memory over another basis it is `stability<FourierBasis<double>>(config, length)`.
/// @param written  vectors before a later write, which say what a rule contracts the past to
///                 (`LongTermConfig::power`, `contraction`); 0 stands for `length`, a second write
/// @throws infty::ValueError if the configuration is not valid, length < 1, or written < 0
template <ConfiguredBasis Psi = GaussianBasis<double>>
Stability stability(const LongTermConfigFor<Psi>& config, Index length, Index written = 0) {
  const auto ridge = detail::exact_ridge<Psi>(config);
  const auto next = ridge.next(length, detail::before(written, length));
  Stability s{.points = next.limits.points, .penalty = next.limits.penalty};
  const auto even = even_locations<double, EigenBackend>(config.samples);
  const auto psi = evaluate(ridge.basis(), even);  // [M, N]
  s.radius = config.samples < config.basis
                 ? spectral_radius(detail::matrix_product(psi, false, next.next_old, true))
                 : spectral_radius(next.carry);
  const FitSize first = fit_size(ridge.basis(), ridge.first(length));
  Tensor<double> G({config.samples + length, config.basis});
  G.slice(0, config.samples).copy_from(next.next_old);
  G.slice(config.samples, config.samples + length).copy_from(next.next_new);
  s.lebesgue = (std::max)(first.lebesgue, fit_size(ridge.basis(), G).lebesgue);
  s.multiplies = detail::Resampler(config).even() && next.limits.multiplies;
  // In front of the first product |X(t)| may have been anything up to most_lebesgue, and is such
  // that the run stays below most_run. Under a rule no write is a product.
  if (config.bounded)
    s.bound = s.multiplies ? (std::min)(most_run, next.limits.run(most_lebesgue)) : s.lebesgue;
  return s;
}

/// What a signal keeps of a write when others follow: the integral over [0, 1] of the square of
/// that write's part of the signal, behind each later write, over what it was at first, for vectors
/// that are all independent. Contraction alone would leave tauᵏ behind k writes; the rest is blur.
/// @param lengths  of the write in question, then of the later ones, each >= 1; not empty
/// @param written  vectors before the write in question, as for `stability`
/// @param done     called with the number of shares behind each, for many take long; may be empty
/// @return         as many shares, the first of which is 1
/// @throws infty::ValueError
template <ConfiguredBasis Psi = GaussianBasis<double>>
std::vector<double> retention(const LongTermConfigFor<Psi>& config, std::span<const Index> lengths,
                              Index written = 0, const std::function<void(Index)>& done = {}) {
  require(!lengths.empty(), "retention", "there are no lengths: the first is that of the write");
  const auto ridge = detail::exact_ridge<Psi>(config);
  const detail::Energy energy_of(ridge.basis());
  written = detail::before(written, lengths.front());
  auto part = ridge.next(lengths.front(), written).next_new;  // [L, N], what each vector adds
  std::vector<double> shares;
  double at_first = 0;
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    if (k > 0)
      part = detail::matrix_product(part, false, ridge.next(lengths[k], written).carry, true);
    written += lengths[k];
    const double energy = energy_of(part);
    if (k == 0) at_first = energy;
    shares.push_back(energy / at_first);
    if (done) done(std::ssize(shares));
  }
  return shares;
}

/// Says what a memory cannot keep of writes of `length` vectors, beside what contraction takes: a
/// sentence for each fault, none where there is none. A fault is a past that is amplified, a part
/// that is left nearly empty (less than a quarter of the energy that as many places of one vector
/// have), or blur that behind three later writes leaves less than a tenth of what contraction
/// leaves, tau³ or its like. @param written  vectors before, as for `stability`
/// @throws infty::ValueError if the configuration is not valid, length < 1, or written < 0
template <ConfiguredBasis Psi = GaussianBasis<double>>
std::vector<std::string> warnings(const LongTermConfigFor<Psi>& config, Index length,
                                  Index written = 0) {
  const auto left = retention<Psi>(config, std::vector<Index>(4, length), written).back();
  const auto ridge = detail::exact_ridge<Psi>(config);
  written = detail::before(written, length);
  const auto each = ridge.next(length, written).next_new;
  auto alike = Tensor<double>::zeros(Shape{1, config.basis});  // all vectors the same
  for (Index i = 0; i < each.size(); ++i) alike.data()[i % config.basis] += each.data()[i];
  const double tau = ridge.tau(written, length),
               filled = detail::Energy(ridge.basis())(alike) / (1 - tau);
  double contracted = 1;
  for (Index later = 1; later <= 3; ++later)
    contracted *= ridge.tau(written + later * length, length);
  std::vector<std::string> found;
  const auto say = [&](auto... words) {
    std::ostringstream sentence;
    sentence.precision(2);
    ((sentence << "of writes of " << length << (length == 1 ? " vector, " : " vectors, "))
     << ... << words);
    found.push_back(sentence.str());
  };
  if (filled < .25)
    say("each fills ", filled,
        " of its part of the signal: hold_short_writes or a larger group "
        "fills it");
  if (left > 1)
    say(left,
        " times what was written is there three writes later: the past is amplified, unless "
        "short writes are held (hold_short_writes) or grouped (group)");
  else if (left < contracted / 10)
    say(left, " is left three writes later, where contraction leaves ", contracted,
        ": the rest is blur; tau is ", tau, ", ridge ", config.ridge, ", samples ", config.samples,
        " of ", config.basis, " functions");
  return found;
}

}  // namespace infty
