// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/core/needs.hpp>
#include <infty/memory/engram.hpp>

namespace infty {

/// What a `WithEngram` remembers.
template <class InnerState, class T, class Backend>
struct WithEngramState {
  InnerState inner;                ///< of the layer
  EngramState<T, Backend> engram;  ///< of the lookup in front of it

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("engram", engram);
  }
};

/// A decorator: a lookup of n-grams in front of a layer, a block mostly: layer(x + engram(x)),
/// which is where its authors have it, in a few blocks of a model [DeepSeek 2026].
template <class Inner>
class WithEngram {
  static_assert(Layer<Inner>, "WithEngram: the inner layer" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Inner>, "WithEngram: the inner layer" INFTY_NO_STATE);
  static_assert(detail::makes_state<Inner>, "WithEngram: the inner layer" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Inner>, "WithEngram: the inner layer" INFTY_NO_FORWARD);

 public:
  using Scalar = typename Inner::Scalar;
  using BackendType = typename Inner::BackendType;
  using V = Variable<Scalar, BackendType>;
  using State = WithEngramState<StateOf<Inner>, Scalar, BackendType>;

  Inner inner;                         ///< what runs behind it
  Engram<Scalar, BackendType> engram;  ///< what is added in front

  /// Puts a lookup in front of a layer for vectors of width d.
  /// @throws infty::ValueError as `Engram`
  WithEngram(Inner layer, EngramConfig config, Index d, Random random = Random(0))
      : inner(std::move(layer)), engram(std::move(config), d, random) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("engram", engram);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    return {infty::make_state(inner, batch, first_row), engram.make_state(batch, first_row)};
  }

  /// [B, L, d] -> [B, L, d], moving both states on.
  /// @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    State next = state;
    const bool answer = std::exchange(pass.answer, true);
    const V found = engram.forward(next.engram, x, pass);
    pass.answer = answer;
    V y = run_layer(inner, next.inner, x + found, pass);
    state = std::move(next);
    return y;
  }
};

}  // namespace infty
