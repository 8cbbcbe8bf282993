// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include <infty/memory/fwd.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/short_term_memory.hpp>

namespace infty {

/// The constants of a `MemoryPair`.
template <class RecentConfig>
struct MemoryPairConfig {
  RecentConfig short_term = {};
  /// Empty for none. Its model_dim, heads and head_dim are those of the attention it stands by.
  std::optional<LongTermConfig> long_term = LongTermConfig{};

  /// The long-term memory's constants, with these sizes.
  LongTermConfig resolved_long_term(const AttentionSizes& sizes) const {
    LongTermConfig config = long_term.value_or(LongTermConfig{});
    config.model_dim = sizes.model_dim;
    config.heads = sizes.heads;
    config.head_dim = sizes.head_dim;
    return config;
  }
};

/// The constants of the ∞-former's memory.
using InftyConfig = MemoryPairConfig<ShortTermConfig>;

/// A long-term memory's state, and what has left the memory in front of it since it was last
/// written.
template <class T, class Backend = EigenBackend>
struct LongTermPast {
  RowSequences<T, Backend> leaving;  ///< is written first thing in the next segment
  LongTermState<T, Backend> memory;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("leaving", leaving);
    see("memory", memory);
  }
};

/// What a `MemoryPair` remembers.
template <class RecentState, class Past>
struct MemoryPairState {
  RecentState short_term;
  std::optional<Past> long_term;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("short_term", short_term);
    see("long_term", long_term);
  }
};

/// A memory of the recent past with a long-term memory behind it, which takes in what the former
/// lets go. The same queries read both, and what they read is added, Z = Z_T + Z_LTM
/// [Martins et al. 2022, Eq. 12]. `InftyMemory`, with a `ShortTermMemory`, is the ∞-former's.
template <class Recent, class LongTerm>
class MemoryPair {
 public:
  using Scalar = typename Recent::Scalar;
  using BackendType = typename Recent::BackendType;
  using V = Variable<Scalar, BackendType>;
  using Biases = BiasesOf<Recent>;
  using Config = MemoryPairConfig<typename Recent::Config>;
  using State = MemoryPairState<typename Recent::State, LongTermPast<Scalar, BackendType>>;

  Recent short_term;
  std::optional<LongTerm> long_term;

  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit MemoryPair(Config config, AttentionSizes sizes, Random random = Random(0))
      : short_term(recent_config(config), sizes, random.split(16)), model_dim_(sizes.model_dim) {
    if (!config.long_term) return;
    require(config.long_term->group == 1, "MemoryPair", "long_term.group is ",
            config.long_term->group,
            ": it must be 1, for vectors wait, and are read, in the memory in front (its stride)");
    long_term.emplace(config.resolved_long_term(sizes), random);
  }

  /// Most past vectors that queries tell apart by their distance.
  Index reach() const { return short_term.reach(); }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("short_term", short_term);
    see("long_term", long_term);
  }

  /// A state of fresh rows; row i draws the random numbers of stream `first_stream` + i.
  /// @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index first_stream = 0) const {
    State state{short_term.make_state(batch, first_stream), {}};
    if (long_term)
      state.long_term.emplace(LongTermPast<Scalar, BackendType>{
          nothing(batch), long_term->make_state(batch, first_stream)});
    return state;
  }

  /// Reads both memories behind what has left the first, and moves them on.
  /// @throws infty::ShapeError; then the state is as it was
  MemoryReading<Scalar, BackendType> forward(State& state, const SegmentOf<Recent>& segment) const {
    State next = written(state, segment);
    auto reading = short_term.forward(next.short_term, segment);
    if (long_term) {
      auto of_past = long_term->attend(next.long_term->memory, reading.queries);
      reading.context = reading.context + of_past.context;
      reading.density = std::move(of_past.density);
      next.long_term->leaving = std::exchange(reading.leaving, {});
    }
    state = std::move(next);
    return reading;
  }

  /// What `forward` does to the state and no more; what leaves it where there is no long-term
  /// memory. @throws infty::ShapeError; then the state is as it was
  RowSequences<Scalar, BackendType> observe(State& state, const SegmentOf<Recent>& segment) const {
    State next = written(state, segment);
    if (long_term && long_term->config().resampling != Resampling::even)
      long_term->read(next.long_term->memory, segment.queries());  // where sticky memories look
    auto leaving = short_term.observe(next.short_term, segment);
    if (long_term) next.long_term->leaving = std::exchange(leaving, {});
    state = std::move(next);
    return leaving;
  }

  /// The divergences of a reading's densities from the prior of width sigma0, [B, H, L]
  /// [Martins et al. 2022, Eq. 20, 21].
  V kl(const V& density) const {
    return infty::kl(density, static_cast<Scalar>(long_term->config().sigma0));
  }

  /// Of `forward` behind full memories. A write of a group of vectors, which comes once in several
  /// short segments, counts with its share.
  double flops(Index batch, Index length) const {
    double count = short_term.flops(batch, length);
    if (!long_term) return count;
    Index rate = 1;  // vectors that go into one that leaves
    if constexpr (requires { short_term.rate(); }) rate = short_term.rate();
    Index group = std::max<Index>(1, length / rate);
    if constexpr (requires { short_term.stride(); }) group = std::max(group, short_term.stride());
    const double share =
        static_cast<double>(length) / (static_cast<double>(rate) * static_cast<double>(group));
    return count + long_term->read_flops(batch, length) +
           share * long_term->write_flops(batch, group);
  }

 private:
  static typename Recent::Config recent_config(const Config& config) {
    if constexpr (requires { config.short_term.resolved(true); })
      return config.short_term.resolved(config.long_term.has_value());
    else
      return config.short_term;
  }

  RowSequences<Scalar, BackendType> nothing(Index batch) const {
    return {Tensor<Scalar, BackendType>::zeros(Shape{batch, 0, model_dim_}),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// The state with what has left the first memory written to the second: here and not when it
  /// left, so that the gradient of this segment's loss reaches the gate.
  State written(const State& state, const SegmentOf<Recent>& segment) const {
    require<ShapeError>(state.long_term.has_value() == long_term.has_value(), "MemoryPair",
                        "the state has ", state.long_term ? "a" : "no", " long-term memory, ours ",
                        long_term ? "one" : "none");
    const Index batch = detail::checked_rows("MemoryPair", state);
    State next = state;
    if (!long_term) return next;
    auto& [leaving, memory] = *next.long_term;
    const Shape& waiting = leaving.vectors.shape();
    require<ShapeError>(waiting.rank() == 3 && waiting == Shape{batch, waiting[1], model_dim_},
                        "MemoryPair", "the state's leaving vectors are ", waiting,
                        ": they must be [", batch, ", L, ", model_dim_, "]");
    long_term->check("MemoryPair", memory);
    if (leaving.vectors.dim(1) == 0) return next;
    V vectors(leaving.vectors);
    if (segment.norm) vectors = masked(segment.normed(vectors), leaving.length);
    long_term->write(memory, vectors, leaving.length);
    leaving = nothing(vectors.dim(0));
    return next;
  }

  /// Zeros again in front of the shorter rows, where the norm's bias has come in.
  static V masked(const V& x, const RowCounts& length) {
    const Index L = x.dim(1), d = x.dim(2);
    if (std::all_of(length.begin(), length.end(), [=](Index n) { return n == L; })) return x;
    auto keep = Tensor<Scalar, BackendType>::zeros(x.shape());
    for (std::size_t row = 0; row < length.size(); ++row)
      BackendType::fill(keep.data() + ((static_cast<Index>(row) + 1) * L - length[row]) * d,
                        length[row] * d, Scalar(1));
    return multiply(x, V(keep));
  }

  Index model_dim_;
};

}  // namespace infty
