// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/needs.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/with_memory.hpp>

namespace infty {

/// What a `MemoryInFront` remembers.
template <class InnerState, class Past>
struct MemoryInFrontState {
  InnerState inner;  ///< of the layer
  Past past;         ///< the memory's state, and what it is to take in next

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("past", past);
  }
};

/// A decorator: any `Memory` as context [Behrouz et al. 2025, §4.1]. What it answers to m learned
/// queries rides through a layer or a stack as m vectors in front of the segment; what comes out
/// of the words is written to it, first thing with the next segment, so that the gradient of that
/// segment's loss reaches what the memory makes of it.
///
/// In the paper the segment's own vectors ask. Then each word's answer, which all words see, would
/// tell of the words behind; learned queries let nobody see what is to come.
template <class Inner, class M>
class MemoryInFront {
  static_assert(Layer<Inner>, "MemoryInFront: the inner layer" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Inner>, "MemoryInFront: the inner layer" INFTY_NO_STATE);
  static_assert(detail::makes_state<Inner>, "MemoryInFront: the inner layer" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Inner>, "MemoryInFront: the inner layer" INFTY_NO_FORWARD);
  static_assert(Memory<M>, "MemoryInFront: the second type is no Memory (memory/memory.hpp)");

 public:
  using Scalar = typename Inner::Scalar;
  using BackendType = typename Inner::BackendType;
  using V = Variable<Scalar, BackendType>;
  using Past =
      MemoryPast<Scalar, BackendType, typename M::State>;  ///< the memory's part of a state
  using State = MemoryInFrontState<StateOf<Inner>, Past>;

  Inner inner;  ///< what the answers ride through
  M memory;     ///< is asked and written
  V queries;    ///< [m, H D], drawn from a standard normal distribution

  /// Puts a memory in front of a layer.
  /// @param config  of the memory; of its sizes, model_dim becomes d, and heads and head_dim, where
  ///                they are 0, become 1 and d
  /// @param tokens  m  @param d  width of vectors
  /// @throws infty::ValueError unless both are >= 1 and the configuration is valid
  MemoryInFront(Inner layer, typename M::Config config, Index tokens, Index d, Random random)
      : inner(std::move(layer)),
        memory(sized((check(tokens, d), config), d), random.split(0)),
        d_(d) {
    Tensor<Scalar, BackendType> drawn(Shape{tokens, width(sized(config, d), d)});
    Random own = random.split(1);
    fill_normal(drawn, 0, 1, own);
    queries = V(std::move(drawn), true);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("memory", memory);
    see("queries", queries);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    require_rows("MemoryInFront::make_state", batch);
    return {infty::make_state(inner, batch, first_row),
            {nothing(batch), memory.make_state(batch, first_row)}};
  }

  /// [B, L, d] -> [B, L, d], moving the state on.
  /// @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    const Index batch = detail::checked_rows("MemoryInFront", state), m = queries.dim(0);
    const Shape& waiting = state.past.leaving.vectors.shape();
    require<ShapeError>(x.shape().rank() == 3 && x.shape() == Shape{batch, x.dim(1), d_} &&
                            waiting.rank() == 3 && waiting == Shape{batch, waiting[1], d_},
                        "MemoryInFront", "x is ", x.shape(), ", the state's waiting vectors ",
                        waiting, ": they must be [", batch, ", L, ", d_, "]");
    detail::require_room_for_tokens("MemoryInFront", x.dim(1), pass);
    State next = state;
    auto& leaving = next.past.leaving;
    auto& past = next.past.memory;
    if (leaving.vectors.dim(1) > 0) memory.write(past, V(leaving.vectors), leaving.length);
    const V asked =
        add(V(Tensor<Scalar, BackendType>::zeros(Shape{batch, m, queries.dim(1)})), queries);
    const V read = [&] {
      if constexpr (requires { memory.read(past, asked, pass); })
        return memory.read(past, asked, pass);
      else
        return memory.read(past, asked);
    }();
    const bool answer = std::exchange(pass.answer, true);
    const bool answer_before = std::exchange(pass.answer_before, answer_before_of(pass));
    pass.before += m;
    const V y = run_layer(inner, next.inner, concat(read, x), pass);
    pass.before -= m;
    pass.answer_before = answer_before;
    pass.answer = answer;
    // Of what is in front, all may have been left out.
    const Index end = y.dim(1), words = x.dim(1) - pass.before - pass.behind;
    const V written = narrow(y, end - pass.behind - words, end - pass.behind);
    leaving = {written.value(), RowCounts(static_cast<std::size_t>(batch), words)};
    state = std::move(next);
    if (!answer) return {};
    return end < x.dim(1) ? y : narrow(y, end - x.dim(1), end);
  }

 private:
  using Config = typename M::Config;

  static void check(Index tokens, Index d) {
    require(tokens >= 1 && d >= 1, "MemoryInFront", "tokens is ", tokens, ", d is ", d,
            ": both must be >= 1");
    require_sizes("MemoryInFront", {{"tokens", tokens}, {"d", d}});
  }

  /// The answers in front are wanted only if those of vectors that were there before are.
  static bool answer_before_of(const Pass<Scalar, BackendType>& pass) {
    return pass.answer_before && pass.before > 0;
  }

  static Config sized(Config config, Index d) {
    if constexpr (requires { config.model_dim = d; }) config.model_dim = d;
    if constexpr (requires { config.heads = config.head_dim = d; }) {
      if (config.heads == 0) config.heads = 1;
      if (config.head_dim == 0) config.head_dim = d;
    }
    return config;
  }

  static Index width(const Config& config, Index d) {
    if constexpr (requires { config.heads* config.head_dim; })
      return config.heads * config.head_dim;
    else
      return d;
  }

  RowSequences<Scalar, BackendType> nothing(Index batch) const {
    return {Tensor<Scalar, BackendType>::zeros(Shape{batch, 0, d_}),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  Index d_;
};

}  // namespace infty
