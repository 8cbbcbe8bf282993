// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/memory/long_term_config.hpp>
#include <infty/memory/long_term_state.hpp>
#include <infty/memory/ops/density.hpp>
#include <infty/memory/ops/gibbs.hpp>
#include <infty/memory/ops/project_heads.hpp>
#include <infty/memory/ops/weighted_coefficients.hpp>
#include <infty/memory/resampling.hpp>
#include <infty/nn/linear.hpp>
#include <infty/signal/density.hpp>
#include <infty/signal/fewer_gaussians.hpp>
#include <infty/signal/sampled_basis.hpp>

namespace infty::detail {

/// What the heads of a long-term memory have read.
template <class T, class B>
struct HeadReading {
  Variable<T, B> heads;    ///< [B, Q, H D]
  Variable<T, B> density;  ///< [2, B, H, Q]; nothing of a density of scores
  Variable<T, B> keys;     ///< [B, N, H D] of a density of scores
};

/// How far densities [2, B, H, Q] are from the prior of a configuration -> [B, H, Q].
template <class Density, class T, class B>
Variable<T, B> divergence_from_prior(const LongTermConfig& config, const Variable<T, B>& density) {
  const T sigma0 = static_cast<T>(config.sigma0);
  const auto y = infty::divergence<Density>(density, sigma0);
  return config.mean_term ? y + mean_divergence(density, static_cast<T>(config.mu0), sigma0) : y;
}

/// How a long-term memory is read by densities with a mean in [0, 1] and a variance. `Memory` is
/// the memory whose maps are used.
template <class T, class Density, class Psi, class B>
struct LongTermReader {
  using V = Variable<T, B>;

  LongTermReader(const LongTermConfig& config, const Psi& psi) {
    if constexpr (can_have_fewer<Density, Psi>)
      if (config.skip_tails) fewer = fewer_gaussians<B>(psi);
  }

  /// What the functions are sums of, where these are fewer, once for all layers that share a
  /// reader.
  std::vector<FewerGaussians<T, B>> fewer;

  /// Of a quadrature, which there is none of.
  static Index nodes() { return 0; }

  /// What the heads read, [B, Q, H D]. @param check  throws unless a part of it is finite
  template <class Memory, class Check>
  HeadReading<T, B> read(const Memory& memory, LongTermState<T, B>& state, const V& queries,
                         const Check& check) const {
    const V density = density_of(memory, state, queries);
    check(density);
    return {expected_head_values<Density>(memory.basis(), density, state.coefficients,
                                          memory.value.weight, memory.config().skip_tails, fewer),
            density,
            {}};
  }

  /// Adds to what was noted where these queries looked.
  template <class Memory>
  void note(const Memory&, const Resampler& resampler, LongTermState<T, B>& state,
            const V& /*queries*/, const HeadReading<T, B>& reading) const {
    resampler.template note<Density>(state.attention, reading.density.value());
  }

 private:
  template <class Memory>
  V density_of(const Memory& memory, LongTermState<T, B>& state, const V& queries) const {
    const LongTermConfig& config = memory.config();
    if constexpr (CentredBasis<Psi>)
      if (config.parameters == DensityParameters::moments)
        return moment_density(queries, memory.key.forward(state.coefficients), memory.basis(),
                              config.heads);
    return affine_density(queries, density_keys(memory, state), config.heads,
                          static_cast<T>(config.variance_floor));
  }

  /// [B, 2, H D]: the keys that both affine maps of scores need.
  template <class Memory>
  V density_keys(const Memory& memory, LongTermState<T, B>& state) const {
    const auto made_now = [&] {
      return memory.key.forward(weighted_coefficients(memory.density_weight, state.coefficients));
    };
    if (Tape::active()) return made_now();
    return state.density_keys.of(state.coefficients, memory.density_weight, memory.key.weight,
                                 made_now);
  }
};

/// How it is read by a density of scores: with the basis sampled at the places of a trapezoid rule,
/// and for a sticky memory at the edges of its bins, once for all layers that share a reader.
template <class T, class Density, class Psi, class B>
  requires ScoreDensity<Density>
struct LongTermReader<T, Density, Psi, B> {
  using V = Variable<T, B>;

  LongTermReader(const LongTermConfig& config, const Psi& psi)
      : points(sampled_basis<B>(psi, even_places(config.points), true)) {
    if (config.resampling == Resampling::even) return;
    require_sizes("LongTermConfig", {{"basis", config.basis}, {"bins", config.bins}});
    edges = sampled_basis<B>(psi, edge_places(config.bins), false);
  }

  /// Of the quadrature of reads.
  Index nodes() const { return points.psi.dim(0); }

  SampledBasis<T, B> points;                ///< for reads
  std::optional<SampledBasis<T, B>> edges;  ///< for sticky memories

  template <class Memory, class Check>
  HeadReading<T, B> read(const Memory& memory, LongTermState<T, B>& state, const V& queries,
                         const Check& check) const {
    const auto projected = [&](const Linear<T, B>& map, DensityKeys<T, B>& kept) {
      const auto made_now = [&] { return map.forward(state.coefficients); };
      return Tape::active() ? made_now()
                            : kept.of(state.coefficients, map.bias, map.weight, made_now);
    };
    const V keys = projected(memory.key, state.density_keys);
    check(keys);
    return {gibbs_expectation(points, queries, keys, projected(memory.value, state.read_values),
                              memory.config().heads),
            {},
            keys};
  }

  template <class Memory>
  void note(const Memory& memory, const Resampler& resampler, LongTermState<T, B>& state,
            const V& queries, const HeadReading<T, B>& reading) const {
    if (!resampler.notes_reads() || queries.dim(1) == 0) return;
    const LongTermConfig& config = memory.config();
    auto sum = gibbs_bin_probability(*edges, queries.value(), reading.keys.value(), config.heads,
                                     config.shifted_bins);
    T* const p = sum.data();
    const T* const before = std::as_const(state.attention).data();
    B::for_each(sum.size(), [=] INFTY_HOST_DEVICE(Index i) { p[i] += before[i]; });
    state.attention = sum;
  }
};

}  // namespace infty::detail
