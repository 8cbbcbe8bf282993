// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/core/needs.hpp>
#include <infty/memory/associative_memory.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// What an `AssociativeLayer` remembers.
template <class InnerState, class T, class Backend>
struct AssociativeLayerState {
  InnerState inner;                     ///< of the layer inside
  AssociativeState<T, Backend> memory;  ///< of its memory

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("memory", memory);
  }
};

/// A decorator: a layer, a block mostly, with a memory of its own, of which an Associative
/// Recurrent Memory Transformer is made [Rodkin et al. 2024]. Every vector reads the memory in
/// front of the layer, x + read(x). What comes out of the layer at the memory tokens behind the
/// segment is written: `TokensBehind` around the stack puts them there. A call without such tokens
/// reads and does not write, as in generation within a segment.
template <class Inner>
class AssociativeLayer {
  static_assert(Layer<Inner>, "AssociativeLayer: the inner layer" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Inner>, "AssociativeLayer: the inner layer" INFTY_NO_STATE);
  static_assert(detail::makes_state<Inner>,
                "AssociativeLayer: the inner layer" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Inner>, "AssociativeLayer: the inner layer" INFTY_NO_FORWARD);

 public:
  using Scalar = typename Inner::Scalar;
  using BackendType = typename Inner::BackendType;
  using V = Variable<Scalar, BackendType>;
  using Config = AssociativeConfig;
  using State = AssociativeLayerState<StateOf<Inner>, Scalar, BackendType>;

  Inner inner;                                    ///< the layer that reads and is written
  AssociativeMemory<Scalar, BackendType> memory;  ///< of vectors of width d

  /// Puts a memory around a layer of vectors of width d.
  /// @throws infty::ValueError as `AssociativeMemory`
  AssociativeLayer(Inner layer, AssociativeConfig config, Index d, Random random)
      : inner(std::move(layer)), memory(config, d, random) {}

  /// The memory's constants.
  const AssociativeConfig& config() const { return memory.config(); }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("memory", memory);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    return {infty::make_state(inner, batch, first_row), memory.make_state(batch, first_row)};
  }

  /// [B, L, d] -> [B, L, d], moving the state on. @throws infty::ShapeError; then the state is as
  /// it was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    require<ShapeError>(x.shape().rank() == 3 && pass.behind >= 0 && pass.behind <= x.dim(1),
                        "AssociativeLayer", "of vectors ", x.shape(), ", ", pass.behind,
                        " are said to be memory tokens behind");
    State next = state;
    const V input = x + memory.read(state.memory, x);
    const bool answer = std::exchange(pass.answer, pass.answer || pass.behind > 0);
    const V y = run_layer(inner, next.inner, input, pass);
    pass.answer = answer;
    if (pass.behind > 0) memory.write(next.memory, narrow(y, y.dim(1) - pass.behind, y.dim(1)));
    state = std::move(next);
    return answer ? y : V();
  }
};

}  // namespace infty
