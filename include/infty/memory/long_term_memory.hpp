// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <utility>

#include <infty/core/checked.hpp>
#include <infty/eigen/default.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/long_term_basis.hpp>
#include <infty/memory/long_term_checks.hpp>
#include <infty/memory/long_term_config.hpp>
#include <infty/memory/long_term_needs.hpp>
#include <infty/memory/long_term_reader.hpp>
#include <infty/memory/long_term_state.hpp>
#include <infty/memory/ops/gate.hpp>
#include <infty/memory/ops/largest.hpp>
#include <infty/memory/ops/write.hpp>
#include <infty/memory/resampling.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/pass.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/density.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/ridge_cache.hpp>

namespace infty {

/// The long-term memory (LTM) of the ∞-former: the past, of any length, as a continuous signal
/// X(t) = Bᵀ psi(t) on [0, 1], written by ridge regression and read by attending with a probability
/// density   [Martins et al. 2022, §3]. The layer holds parameters, the caller holds the state.
///
/// `LongTermMemory<float>` is the ∞-former's. The second parameter is another density, such as
/// `TruncatedParabola`, or `GibbsDensity`, ∞-Video's, the third another basis, such as
/// `FourierBasis<float>`.
template <class T, class Density, class Psi, class Backend>
class LongTermMemory {
  static_assert(sizeof(detail::LongTermNeeds<T, Density, Psi>) > 0);
  using V = Variable<T, Backend>;

 public:
  using Scalar = T;
  using BackendType = Backend;
  using Config = LongTermConfigFor<Psi>;
  using State = LongTermState<T, Backend>;

  Variable<T, Backend> gate_weight, gate_bias;  ///< [3, d, d] and [d], empty without a gate
  Linear<T, Backend> key, value;                ///< d -> H D (Eq. 8)
  /// [2, N], w_mu and w_var; empty for `moments` and for a density of scores.
  Variable<T, Backend> density_weight;
  Linear<T, Backend> out;  ///< H D -> d (Eq. 11), empty without `project`

  /// Makes a memory with weights of its own, drawn from `random`. @throws infty::ValueError if the
  /// configuration is not valid, or asks for `moments` of a basis without centres and widths, or
  /// for biases with a density that is not one of scores
  explicit LongTermMemory(Config config, Random random = Random(0))
      : LongTermMemory(config, make_cache(config), std::nullopt, random) {}

  /// Another memory of the same configuration, with parameters of its own, drawn from `random` as
  /// the constructor draws them. Both share the ridge matrices, which are solved and kept once: the
  /// layers of a model are made so.
  LongTermMemory sibling(Random random) const {
    return LongTermMemory(config_, cache_, reader_, random);
  }

  /// The constants as given.
  const Config& config() const { return config_; }
  /// The N functions that the signal is made of.
  const Psi& basis() const { return cache_.basis(); }
  /// The matrices of writes, by the number of vectors.
  const RidgeCache<T, Backend, Psi>& ridge() const { return cache_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    if (config_.gate) {
      see("gate_weight", gate_weight);
      see("gate_bias", gate_bias);
    }
    see("key", key);
    see("value", value);
    if (has_density_weight()) see("density_weight", density_weight);
    if (config_.project) see("out", out);
  }

  /// A state of fresh rows; row i draws the random numbers of stream `first_row` + i.
  /// @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    require_rows("LongTermMemory::make_state", batch);
    return detail::fresh_long_term_state(config_.basis, config_.model_dim, resampler_.bins(),
                                         waiting_, batch, first_row);
  }

  /// Checks that a memory like this one made a state, and that its members have as many rows.
  /// @throws infty::ShapeError, infty::ValueError that name `op` if not
  void check(const char* op, const State& state) const {
    detail::check_long_term_state(op, config_, resampler_.bins(), waiting_, state);
  }

  /// Takes in the next vectors of every row   [Martins et al. 2022, Eq. 13-18]. No vectors change
  /// nothing. With a `group`, vectors wait until there are so many; no gradient flows to them then,
  /// but to the gate. @param x  [batch, L, d], any L >= 0
  /// @throws infty::ShapeError, infty::NonFiniteError for NaN, infinity and what would overflow;
  /// then the state is as it was
  /// @post  of a bounded memory, |X(t)| <= 64 times the largest |x| ever written, t in [0, 1]
  void write(State& state, const V& x) const {
    check("write", state);
    detail::check_vectors("write", x.shape(), state.coefficients.dim(0), config_.model_dim);
    write(state, x, RowCounts(static_cast<std::size_t>(x.dim(0)), x.dim(1)));
  }

  /// The same where rows take in different numbers of vectors, the last `counts` of x each;
  /// those before are zero. @throws as above, and infty::ValueError for a count not in [0, L]
  void write(State& state, const V& x, const RowCounts& counts) const {
    write_at(state, x, counts, {});
  }

  /// The same, with the old signal sampled at given places instead of what the configuration says.
  /// @param locations  [batch, samples], in [0, 1]; empty for what the configuration says
  void write_at(State& state, const V& x, const RowCounts& counts,
                const Tensor<T, Backend>& locations) const {
    check("write", state);
    detail::check_vectors("write", x.shape(), state.coefficients.dim(0), config_.model_dim);
    detail::check_counts("write", counts, x.dim(0), x.dim(1));
    detail::check_locations("write", locations, Shape{x.dim(0), config_.samples});
    State next = state;
    if (config_.group > 1) {
      // Now, for what waits and cannot be written would be in the way of all that follows.
      const RowCounts group{config_.group, config_.group};
      detail::require_writable("write", detail::largest_with(next.largest, x.value()),
                               detail::largest_writable(cache_, {0, 1}, group));
      const auto ready = waiting_.write(next.waiting, {x.value(), counts});
      take_in(next, V(ready.vectors), ready.length, locations);
    } else {
      take_in(next, x, counts, locations);
    }
    state = std::move(next);
  }

  /// Writes what waits for its group to be full. @throws as `write`
  void flush(State& state) const {
    check("flush", state);
    State next = state;
    next.waiting = waiting_.make_state(state.coefficients.dim(0));
    take_in(next, V(state.waiting.vectors), state.waiting.length, {});
    state = std::move(next);
  }

  /// What every query reads from the memory, the cost of N and not of what was written
  /// [Martins et al. 2022, Eq. 8-12]. A fresh row reads zeros.
  /// @param queries  [batch, Q, H D], projected: those of the attention that the memory stands by
  /// @return         [batch, Q, d], without `project` [batch, Q, H D]
  /// @throws infty::ShapeError, infty::NonFiniteError if what is read is not finite; then the state
  /// is as it was
  V read(State& state, const V& queries) const { return attend(state, queries).context; }

  /// What `read` reads, in a pass that is shown the "density" of every query and head, as `Reading`
  /// or `density` has it, and if it wants losses is given their "divergence" from the prior, where
  /// the density has one, summed over all of them [Martins et al. 2022, Eq. 20, 21]. `beside` is
  /// as for `attend`.
  V read(State& state, const V& queries, Pass<T, Backend>& pass, const V& beside = {}) const {
    const auto reading = attend(state, queries, beside);
    if constexpr (ScoreDensity<Density>) {
      if (pass.traced) pass.show("density", Variable<T, Backend>(density(state, queries)));
    } else {
      pass.show("density", reading.density);
    }
    if constexpr (DensityWithPrior<Density>)
      if (pass.wants_losses()) pass.lose("divergence", sum(divergence(reading.density)));
    return reading.context;
  }

  /// What `read` reads, with the densities that were used; `divergence` turns these into the
  /// regulariser. @param beside  [batch, Q, H D], added to what the heads read; empty for nothing
  Reading<T, Backend> attend(State& state, const V& queries, const V& beside = {}) const {
    check_queries("read", state, queries);
    const auto check_part = [&](const V& part) {
      detail::require_finite_read(std::as_const(state.coefficients).value(), queries.value(),
                                  part.value());
    };
    check_part(queries);
    const auto reading = reader_.read(*this, state, queries, check_part);
    const auto heads = beside.size() > 0 ? reading.heads + beside : reading.heads;
    const auto read = config_.project ? out.forward(heads) : heads;
    check_part(read);
    reader_.note(*this, resampler_, state, queries, reading);
    return {read, reading.density, state.waiting.length};
  }

  /// The density of scores of every query and head at `config().points` places of [0, 1], both ends
  /// included [Santos et al. 2025, §3]. @param queries  [batch, Q, H D]; @return  [batch, H, Q,
  /// points]. @throws infty::ShapeError
  Tensor<T, Backend> density(const State& state, const Variable<T, Backend>& queries) const
    requires ScoreDensity<Density>
  {
    check_queries("density", state, queries);
    const auto guard = no_grad();
    return gibbs_density(reader_.points, queries.value(), key.forward(state.coefficients).value(),
                         config_.heads);
  }

  /// How far densities, of a `Reading`, are from their prior of width sigma0, as `Density` and
  /// `mean_term` say [Martins et al. 2022, Eq. 20, 21]. @param density  [2, B, H, Q]
  /// @return  [B, H, Q], >= 0. @throws infty::ShapeError
  Variable<T, Backend> divergence(const Variable<T, Backend>& density) const
    requires DensityWithPrior<Density>
  {
    return detail::divergence_from_prior<Density>(config_, density);
  }

  /// Where the next write will sample what is written now: evenly, or for sticky memories by the
  /// attention since the last write -> [batch, samples].
  Tensor<T, Backend> next_locations(const State& state) const {
    check("next_locations", state);
    if (const auto places = resampler_.locations(state.attention, state.writes, state.row_id);
        !places.empty())
      return places;
    return detail::even_rows<T, Backend>(state.coefficients.dim(0), config_.samples);
  }

  /// Whether where a read looks decides where the next write samples, answer or not.
  bool notes_reads() const { return resampler_.notes_reads(); }

  /// Of a later `write` of `length` vectors.
  double write_flops(Index batch, Index length) const { return flops(batch, length).write(); }
  /// Of a `read` by so many queries.
  double read_flops(Index batch, Index length) const { return flops(batch, length).read(); }

 private:
  using Cache = RidgeCache<T, Backend, Psi>;
  using Reader = detail::LongTermReader<T, Density, Psi, Backend>;

  LongTermMemory(Config config, Cache cache, std::optional<Reader> reader, Random random)
      : config_(std::move(config)),
        cache_(std::move(cache)),
        reader_(reader ? *std::move(reader) : Reader(config_, cache_.basis())),
        resampler_(config_),
        waiting_(config_.model_dim, 0, config_.group) {
    const Index d = config_.model_dim, e = inner();
    if (config_.gate) {
      gate_weight = detail::uniform_parameter<T, Backend>(Shape{3, d, d}, 3 * d, random.split(0));
      gate_bias = detail::uniform_parameter<T, Backend>(Shape{d}, 3 * d, random.split(1));
    }
    key = Linear<T, Backend>(d, e, random.split(2), config_.bias);
    value = Linear<T, Backend>(d, e, random.split(3), config_.bias);
    if (has_density_weight())
      density_weight = detail::uniform_parameter<T, Backend>(Shape{2, config_.basis}, config_.basis,
                                                             random.split(4));
    if (config_.project) out = Linear<T, Backend>(e, d, random.split(5), false);
  }

  static Cache make_cache(const Config& config) {
    config.validate();
    require(CentredBasis<Psi> || config.parameters != DensityParameters::moments, "LongTermMemory",
            "parameters is moments: the basis has no centres and widths to make them of");
    require(ScoreDensity<Density> || !config.bias, "LongTermMemory",
            "bias is true: only a density of scores, such as GibbsDensity, is read with biases");
    return Cache(basis_of<Psi>(config), config.ridge_settings());
  }

  /// H D, of all heads.
  Index inner() const { return config_.heads * config_.resolved_head_dim(); }
  detail::LongTermFlops flops(Index batch, Index length) const {
    return {batch,
            length,
            config_.basis,
            config_.model_dim,
            inner(),
            config_.gate,
            reader_.nodes() * config_.heads,
            config_.project};
  }

  /// Writes vectors [batch, L, d], the last `counts` of them, to the signals of `next`.
  void take_in(State& next, const V& x, const RowCounts& counts,
               Tensor<T, Backend> locations) const {
    if (std::all_of(counts.begin(), counts.end(), [](Index n) { return n == 0; })) return;
    if (config_.threshold > 0) detail::clear_full_rows(next, config_.threshold, counts);
    const auto gated = config_.gate ? gate(x, gate_weight, gate_bias) : x;
    if (locations.empty())
      locations = resampler_.locations(next.attention, next.writes, next.row_id);
    auto largest = detail::largest_with(next.largest, gated.value());
    detail::require_writable("write", largest,
                             detail::largest_writable(cache_, next.written, counts));
    next.coefficients = write_coefficients(
        cache_, {next.coefficients, next.written, next.writes, next.last, next.largest}, gated,
        counts, locations);
    next.largest = std::move(largest);
    resampler_.forget(next.attention, counts);
    for (std::size_t row = 0; row < counts.size(); ++row) {
      if (counts[row] == 0) continue;
      next.written[row] += counts[row];
      next.writes[row] += 1;
      next.last[row] = counts[row];
    }
  }

  bool has_density_weight() const {
    return !ScoreDensity<Density> && config_.parameters == DensityParameters::affine;
  }

  void check_queries(const char* op, const State& state, const V& queries) const {
    check(op, state);
    detail::check_queries(op, queries.shape(), state.coefficients.dim(0), inner());
  }

  Config config_;
  Cache cache_;
  Reader reader_;
  detail::Resampler resampler_;
  Fifo<T, Backend> waiting_;
};

}  // namespace infty
#if defined(INFTY_COMPILED) && !defined(__CUDACC__)
#include <infty/memory/compiled.hpp>
#endif
