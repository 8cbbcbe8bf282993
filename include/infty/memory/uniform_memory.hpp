// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/eigen/default.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/ops/pool_in.hpp>
#include <infty/memory/uniform_config.hpp>
#include <infty/memory/uniform_state.hpp>
#include <infty/nn/plain_attention.hpp>
#include <infty/nn/visible.hpp>

namespace infty {

/// A long-term memory of all of the past, at a cost that grows with its logarithm. It contracts by
/// `PowerContraction`, so that what was written first is never squeezed out, and writes by blocks
/// of P: before a block's share of [0, 1] would be less than r, `least_share`, each of its P
/// vectors becomes the mean of twice as many. So a past that is twice as long takes some
/// p / (2 r) writes more, n > P vectors (1.05 p / r + 2) (1 + log2(n / P) / 2) at most, for a power
/// of p, and between them a vector costs one addition of d numbers, and a call of `write` a copy of
/// the P d that wait.
///
/// What waits for its block is read behind a copy of the signal, as if the block were full of it,
/// with the share of [0, 1] that is due to so many vectors, but no less than half of the narrowest
/// function's width, so that what came last is seen at once. The copy is made for the read alone:
/// how a stream is cut into writes changes nothing, nor what was read when, unless the memory is
/// sticky, and the same stream is the same signal to the bit where the same rows write together.
/// With `Waiting::attended` there is no copy: the means that wait are read by attention, and what
/// it reads is added to what the heads read of the signal of the full blocks.
template <class T, class Density, class Psi, class Backend>
class UniformMemory {
  using V = Variable<T, Backend>;
  using Signal = LongTermMemory<T, Density, Psi, Backend>;

 public:
  using Scalar = T;
  using BackendType = Backend;
  using Config = UniformConfig<LongTermConfigFor<Psi>>;
  using State = UniformState<T, Backend>;

  /// Gradients flow to the vectors of the last block, and to no earlier ones.
  static constexpr bool state_takes_gradient = false;

  Signal signal;  ///< all parameters

  /// Makes a memory with weights of its own. @throws infty::ValueError if the configuration is not
  /// valid
  explicit UniformMemory(const Config& config, Random random = Random(0))
      : UniformMemory(config, Signal(checked(config), random)) {}

  /// Another memory of the same configuration, with parameters of its own; both share the ridge
  /// matrices.
  UniformMemory sibling(Random random) const {
    return UniformMemory(config_, signal.sibling(random));
  }

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("signal", signal);
  }

  /// A state of fresh rows; row i draws the random numbers of stream `first_row` + i.
  /// @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    const auto rows = static_cast<std::size_t>((std::max<Index>)(batch, 0));
    auto inner = signal.make_state(batch, first_row);
    return {std::move(inner),
            Tensor<T, Backend>::zeros(Shape{batch, config_.block, config_.model_dim}),
            Tensor<double, Backend>::zeros(Shape{batch, config_.model_dim}),
            RowCounts(rows, 0),
            RowCounts(rows, 0),
            RowCounts(rows, 0),
            RowCounts(rows, 0)};
  }

  /// Checks that a memory like this one made a state, and that its members have as many rows.
  /// @throws infty::ShapeError, infty::ValueError that name `op` if not
  void check(const char* op, const State& state) const {
    require(signal.key.weight.size() > 0, op, "the memory was moved from");
    signal.check(op, state.signal);
    const Index batch = state.signal.coefficients.dim(0);
    const Shape ours{batch, config_.block, config_.model_dim};
    require<ShapeError>(state.means.shape() == ours, op, "the state holds means ",
                        state.means.shape(), ": another memory made it, ours are ", ours);
    require<ShapeError>(state.sum.shape() == Shape{batch, config_.model_dim}, op,
                        "the state holds sums ", state.sum.shape(),
                        ": another memory made it, ours are ", Shape{batch, config_.model_dim});
    detail::checked_rows(op, state);
    for (std::size_t row = 0; row < state.held.size(); ++row) {
      const Index m = state.rate_of(row);
      require(state.held[row] >= 0 && m >= 1 && m <= largest_size / config_.block &&
                  state.held[row] <= m * config_.block && state.taken[row] >= 0 &&
                  state.refits[row] >= 0,
              op, "row ", row, " holds ", state.held[row], " vectors in ", config_.block,
              " means of ", m, ": it must hold what they take at most");
    }
  }

  /// Takes in the next vectors of every row, the last `counts` of x each; no vectors change
  /// nothing. A gradient flows to those that wait then, until the row's next write.
  /// @param x  [batch, L, d], any L >= 0
  /// @throws infty::ShapeError, infty::ValueError, infty::NonFiniteError for NaN, infinity and what
  /// would overflow; then the state is as it was
  /// @post  of a bounded memory, |X(t)| <= 8 times the largest |x| ever taken in, t in [0, 1]; for
  /// a `FixedContraction` 64 times
  void write(State& state, const V& x, const RowCounts& counts) const {
    check("write", state);
    const Index batch = state.signal.coefficients.dim(0);
    detail::check_vectors("write", x.shape(), batch, config_.model_dim);
    detail::check_counts("write", counts, batch, x.dim(1));
    State next = state;
    // Now, for what waits and cannot be written would be in the way of all that follows.
    detail::require_writable("write", detail::largest_with(next.signal.largest, x.value()),
                             writable_);
    RowCounts left = counts, from(counts.size()), take(counts.size());
    while (std::any_of(left.begin(), left.end(), [](Index n) { return n > 0; })) {
      write_full(next, left);
      const RowCounts rates = next.rates();
      for (std::size_t row = 0; row < counts.size(); ++row) {
        from[row] = x.dim(1) - left[row];
        take[row] = (std::min)(left[row], rates[row] * config_.block - next.held[row]);
        left[row] -= take[row];
      }
      next.means = detail::pool_in(next.means, next.sum, next.held, rates, x, from, take);
      for (std::size_t row = 0; row < counts.size(); ++row) {
        next.held[row] += take[row];
        next.taken[row] += take[row];
      }
    }
    state = std::move(next);
  }

  /// The same, all vectors of every row.
  void write(State& state, const V& x) const {
    detail::check_vectors("write", x.shape(), state.signal.coefficients.dim(0), config_.model_dim);
    write(state, x, RowCounts(static_cast<std::size_t>(x.dim(0)), x.dim(1)));
  }

  /// What every query reads from all that was taken in   [Martins et al. 2022, Eq. 8-12]. A fresh
  /// row reads zeros. @param queries  [batch, Q, H D], projected; @return  [batch, Q, d], without
  /// `project` [batch, Q, H D]. @throws infty::ShapeError, infty::NonFiniteError if what is read is
  /// not finite; then the state is as it was
  V read(State& state, const V& queries) const {
    return read_by(state, queries, [&](auto& seen, const V& beside) {
      return signal.attend(seen, queries, beside).context;
    });
  }

  /// The same in a pass, which is shown and given what the signal's read shows and gives: nothing
  /// of the attention to what waits.
  V read(State& state, const V& queries, Pass<T, Backend>& pass) const {
    return read_by(state, queries, [&](auto& seen, const V& beside) {
      return signal.read(seen, queries, pass, beside);
    });
  }

  /// The signal that a read sees: all full blocks, and with `Waiting::written` behind them what
  /// waits.
  /// @throws infty::ShapeError, infty::ValueError
  /// @post  of a bounded memory, |X(t)| <= 64 times the largest |x| ever taken in, t in [0, 1]
  LongTermState<T, Backend> seen(const State& state) const {
    check("seen", state);
    auto carried = state.carried;
    return shown(state, carried);
  }

  /// Whether attention beside this memory is to read what waits: see `Waiting::short_term`.
  bool shows_older() const { return config_.waiting == Waiting::short_term; }
  /// The means that wait, for that attention. @throws infty::ShapeError, infty::ValueError
  OlderVectors<T, Backend> older(const State& state) const {
    check("older", state);
    return {detail::last_means(state.means, state.held, state.rates()), state.entries()};
  }

  /// Whether where a read looks decides where the next write samples, answer or not: where in the
  /// signal, not at which of the means that wait.
  bool notes_reads() const { return signal.notes_reads(); }

 private:
  UniformMemory(const Config& config, Signal made) : signal(std::move(made)), config_(config) {
    double narrowest = 1;
    if constexpr (CentredBasis<Psi>) {
      for (Index j = 0; j < signal.basis().size(); ++j)
        narrowest = (std::min)(narrowest, static_cast<double>(signal.basis().width(j)));
    } else {
      narrowest = 1 / static_cast<double>(config.basis);
    }
    // A share of less than half of it says no more; a rule that is never so small has no end.
    for (most_written_ = config.block;
         most_written_ <= largest_size / 4 && share(most_written_) >= narrowest;)
      most_written_ *= 2;
    if (config.bounded) writable_ = detail::surely_writable<T>(config.block + config.basis);
  }

  /// The share of [0, 1] that a block takes behind so many vectors, or means of vectors.
  double share(Index written) const { return 1 - signal.ridge().tau(written, config_.block); }

  /// Behind how many a full block has the share that is due to what waits; no more than that a
  /// share of half the narrowest function is.
  Index as_if_written(const State& state, std::size_t row) const {
    const Index written = state.signal.written[row];
    const double full = static_cast<double>(config_.block * state.rate_of(row)),
                 due = static_cast<double>(written) * (full / static_cast<double>(state.held[row])),
                 most = static_cast<double>((std::max)(written, most_written_));
    return static_cast<Index>((std::min)(due, most) + .5);
  }

  LongTermState<T, Backend> shown(const State& state,
                                  detail::CarriedSignal<T, Backend>& carried) const {
    auto signals = state.signal;
    if (config_.waiting != Waiting::written || state.nothing_waits()) return signals;
    RowCounts counts(state.held.size(), 0);
    std::vector<double> shares(state.held.size(), 0);
    for (std::size_t row = 0; row < counts.size(); ++row) {
      if (state.held[row] == 0) continue;
      counts[row] = config_.block;
      Index& written = signals.written[row];
      if (written == 0) continue;
      written = as_if_written(state, row);
      shares[row] = share(written);
    }
    V waiting = detail::spread_means(state.means, state.held, state.rates());
    if (config_.gate) waiting = gate(waiting, signal.gate_weight, signal.gate_bias);
    signals.coefficients = write_coefficients(
        signal.ridge(),
        WrittenSignal<T, Backend>{
            state.signal.coefficients, signals.written, signals.writes, signals.last,
            signals.largest,
            &carried.of(state.signal.coefficients, std::move(shares), signal.ridge().identity())},
        waiting, counts, Tensor<T, Backend>());
    for (std::size_t row = 0; row < counts.size(); ++row) signals.written[row] += counts[row];
    return signals;
  }

  /// What queries read of the means that wait, by content, in front of the map of what the heads
  /// read, [batch, Q, H D]; zeros where a row has none, nothing where no row has.
  V attended(const State& state, const V& queries) const {
    if (config_.waiting != Waiting::attended || state.nothing_waits()) return {};
    detail::check_queries("read", queries.shape(), state.means.dim(0), signal.key.weight.dim(0));
    V waiting = detail::last_means(state.means, state.held, state.rates());
    if (config_.gate) waiting = gate(waiting, signal.gate_weight, signal.gate_bias);
    return scaled_dot_product_attention(
        queries, signal.key.forward(waiting), signal.value.forward(waiting),
        PlainAttentionOptions<Backend>{
            .heads = config_.heads,
            .visible = detail::visible<Backend>(state.entries(), config_.block)});
  }

  static LongTermConfigFor<Psi> checked(const Config& config) {
    config.validate();
    return config.signal();
  }

  /// Writes the full blocks of the rows that are to take in more, and doubles the rate of those
  /// whose next block would take too little, unless the rule gives fewer means no more.
  void write_full(State& next, const RowCounts& more) const {
    RowCounts full(more.size(), 0), held(more.size(), 0);
    bool any = false;
    for (std::size_t row = 0; row < more.size(); ++row) {
      if (more[row] == 0 || next.held[row] < config_.block * next.rate_of(row)) continue;
      full[row] = config_.block;
      held[row] = next.held[row];
      any = true;
    }
    if (!any) return;
    signal.write(next.signal, detail::spread_means(next.means, held, next.rates()), full);
    for (std::size_t row = 0; row < full.size(); ++row) {
      if (full[row] == 0) continue;
      next.held[row] = 0;
      next.refits[row] += 1;
      Index& written = next.signal.written[row];
      const Index blocks = written / config_.block, m = next.rate_of(row);
      next.rate[row] = m;
      if (blocks % 2 == 0 && share(written) < config_.resolved_least_share() &&
          share(written / 2) > share(written) && m <= largest_size / (4 * config_.block)) {
        next.rate[row] = 2 * m;
        written /= 2;
      }
    }
  }

  template <class Read>
  V read_by(State& state, const V& queries, Read read) const {
    check("read", state);
    auto carried = state.carried;
    auto seen = shown(state, carried);
    const bool as_it_is = config_.waiting != Waiting::written || state.nothing_waits();
    V answer = read(seen, attended(state, queries));
    if (as_it_is)
      state.signal = std::move(seen);  // with the keys that were made for this read
    else
      state.signal.attention = seen.attention;
    state.carried = std::move(carried);
    return answer;
  }

  Config config_;
  Index most_written_ = 0;                        ///< that what waits is shown behind
  T writable_ = (std::numeric_limits<T>::max)();  ///< vectors up to this size
};

}  // namespace infty
