// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/memory_tokens.hpp>

namespace infty {

/// The constants of a `RecurrentTokens`.
struct RecurrentTokensConfig {
  Index tokens = 10;   ///< m, memory tokens on either side of a segment [Bulatov et al. 2022]
  bool behind = true;  ///< whether they stand behind the segment as well, to be written there
  /// Whether tokens of a group see each other both ways. No, as around GPT-2; the authors'
  /// Transformer-XL says yes.
  bool both_ways = false;
  bool read_past = true;  ///< whether they see what attention holds (`read_mem_from_cache`)
  bool held = false;      ///< whether attention holds them, as the authors' Transformer-XL does
  bool shifted = false;   ///< positions of keys ahead as the authors' program's shift has them
  /// Segments that a gradient flows back through: all that a row remembers, the stack's part too,
  /// is detached whenever it has seen another so many. 0: through all that a tape has recorded.
  Index back_through = 0;
  double deviation = 1;  ///< of the normal distribution that the first vectors are drawn from

  /// The same as those of memory tokens that are the same in every segment.
  MemoryTokensConfig memory_tokens() const {
    return {tokens, behind, both_ways, read_past, held, shifted, deviation};
  }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("RecurrentTokensConfig", "tokens", tokens, 1);
    require_at_least("RecurrentTokensConfig", "back_through", back_through, 0);
    memory_tokens().validate();
  }
};

/// What a `RecurrentTokens` remembers.
template <class InnerState, class T, class Backend>
struct RecurrentTokensState {
  InnerState inner;             ///< of the stack
  Variable<T, Backend> tokens;  ///< [batch, m, d], zeros in a fresh row; a gradient flows to them
  RowCounts segments;           ///< that a row has seen; behind none it begins with learned vectors

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("tokens", tokens);
    see("segments", segments);
  }
};

/// A decorator: recurrent memory tokens around any stack, the Recurrent Memory Transformer [Bulatov
/// et al. 2022]. A segment goes through all layers as [memory; segment; memory], with the
/// same m vectors in front, to be read, and behind, to be written. What comes out behind is the
/// memory of the next segment, with a gradient that flows through as many segments as are recorded;
/// that of the first is learned. Where the model has a norm behind its layers, or counts positions
/// from the first memory token on, these are inside: `Layers<AddedPlaces, Layers<Block>,
/// LayerNorm>`.
///
/// A pass that is traced is shown what `MemoryTokens` shows it.
template <class Inner>
class RecurrentTokens {
  static_assert(Layer<Inner>, "RecurrentTokens: the inner layer" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Inner>, "RecurrentTokens: the inner layer" INFTY_NO_STATE);
  static_assert(detail::makes_state<Inner>, "RecurrentTokens: the inner layer" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Inner>, "RecurrentTokens: the inner layer" INFTY_NO_FORWARD);

 public:
  using Scalar = typename Inner::Scalar;
  using BackendType = typename Inner::BackendType;
  using V = Variable<Scalar, BackendType>;
  using Config = RecurrentTokensConfig;
  using State = RecurrentTokensState<StateOf<Inner>, Scalar, BackendType>;

  Inner inner;                             ///< the stack that the tokens ride through
  Embedding<Scalar, BackendType> initial;  ///< the memory of a fresh row, [m, d]

  /// Puts tokens around a stack of width d.
  /// @throws infty::ValueError if the configuration is not valid, or unless d >= 1
  RecurrentTokens(Inner stack, Config config, Index d, Random random)
      : inner(std::move(stack)),
        initial((config.validate(), config.tokens), d, random, config.deviation),
        config_(config) {}

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("initial", initial);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    require_rows("RecurrentTokens::make_state", batch);
    const Index m = initial.weight.dim(0), d = initial.weight.dim(1);
    return {infty::make_state(inner, batch, first_row),
            V(Tensor<Scalar, BackendType>::zeros(Shape{batch, m, d})),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// [B, L, d] -> [B, L, d], moving the state on.
  /// @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    const Index m = initial.weight.dim(0), d = initial.weight.dim(1);
    require<ShapeError>(x.shape().rank() == 3 && x.dim(2) == d, "RecurrentTokens", "x is ",
                        x.shape(), ": it must be [B, L, ", d, "]");
    const Shape shape{x.dim(0), m, d};
    require<ShapeError>(
        state.tokens.shape() == shape && static_cast<Index>(state.segments.size()) == x.dim(0),
        "RecurrentTokens", "the state's tokens are ", state.tokens.shape(), " and ",
        state.segments.size(), " counts: they must be ", shape, " and ", x.dim(0));
    State next = state;
    const bool front = !config_.behind;  // whether what is written comes out in front
    const V y = detail::run_with_tokens("RecurrentTokens", inner, next.inner, memory(state), x,
                                        config_.behind, config_.memory_tokens().rules(), true,
                                        front || pass.traced, pass);
    detail::show_tokens(y, m, config_.behind, pass);
    const Index all = y.dim(1), end = front ? all : all - m;
    for (Index& n : next.segments) ++n;
    next.tokens = front ? narrow(y, 0, m) : narrow(y, end, all);
    cut(next);
    state = std::move(next);
    // What is in front may have been left out.
    return pass.answer ? narrow(y, (std::max<Index>)(0, end - x.dim(1)), end) : V();
  }

 private:
  /// What rows begin a segment with: the learned vectors, if it is their first.
  V memory(const State& state) const {
    const auto fresh = [](Index n) { return n == 0; };
    if (std::none_of(state.segments.begin(), state.segments.end(), fresh)) return state.tokens;
    const Index m = initial.weight.dim(0);
    const V first = initial.forward(
        detail::memory_numbers<BackendType>(static_cast<Index>(state.segments.size()), m));
    if (std::all_of(state.segments.begin(), state.segments.end(), fresh)) return first;
    PoolVector<Scalar> ones;  // in fresh rows
    for (const Index n : state.segments) ones.push_back(fresh(n) ? Scalar(1) : Scalar(0));
    const auto where = Tensor<Scalar, BackendType>::from(
        Shape{static_cast<Index>(ones.size()), 1, 1}, ones.data());
    return add(state.tokens, multiply(first, V(where)));
  }

  /// Takes the gradient from rows that have seen another `back_through` segments: no gradient flows
  /// to rows that were taken out.
  void cut(State& state) const {
    const Index most = config_.back_through, rows = std::ssize(state.segments);
    if (most == 0 || !Tape::active()) return;
    const auto whole = [most](Index n) { return n % most == 0; };
    if (std::all_of(state.segments.begin(), state.segments.end(), whole)) {
      state = take_rows(state, 0, rows);
      return;
    }
    for (Index row = 0; row < rows; ++row)
      if (whole(state.segments[static_cast<std::size_t>(row)]))
        put_rows(state, row, take_rows(state, row, row + 1));
  }

  Config config_;
};

}  // namespace infty
