// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// What a `RenewedPast` remembers.
template <class InnerState, class T, class Backend>
struct RenewedPastState {
  InnerState inner;                ///< of the stack
  RowSequences<T, Backend> input;  ///< [batch, capacity, d], the last vectors, as they came in

  template <class Visitor>
  void visit(Visitor&& see) {
    inner.visit(see);
    see("input", input);
  }
};

/// A decorator: the last vectors of every row go through all layers again with each segment, in
/// front of it, as memory tokens do, so that each layer sees the past as the layer below has
/// renewed it [Ji et al. 2022]. No gradient flows into what is held.
template <class Inner>
class RenewedPast {
  static_assert(SequenceLayer<Inner>, "RenewedPast: the inner layer is no SequenceLayer");

 public:
  using Scalar = typename Inner::Scalar;
  using BackendType = typename Inner::BackendType;
  using V = Variable<Scalar, BackendType>;
  using State = RenewedPastState<StateOf<Inner>, Scalar, BackendType>;

  Inner inner;  ///< the stack; its own parameters are the only ones

  /// Holds so many vectors as the mixers of the stack do, `mixer.capacity()` of width
  /// `mixer.model_dim()`.
  explicit RenewedPast(Inner stack)
      : inner(std::move(stack)),
        fifo_(inner.layers.front().mixer.model_dim(), inner.layers.front().mixer.capacity()) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    inner.visit(see);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    return {inner.make_state(batch, first_row), fifo_.make_state(batch)};
  }

  /// [B, L, d] -> [B, L, d], moving the state on.
  /// @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    fifo_.check("RenewedPast", state.input);
    require(pass.before == 0 && pass.behind == 0, "RenewedPast", "there are ", pass.before, " and ",
            pass.behind, " memory tokens around the segment: a renewed past takes none");
    const auto& held = state.input.length;
    const Index past = *std::max_element(held.begin(), held.end()), capacity = fifo_.capacity();
    State next = state;
    pass.before = past;
    pass.answer_before = false;
    const V all =
        past > 0 ? concat(narrow(V(state.input.vectors), capacity - past, capacity), x) : x;
    V y = inner.forward(next.inner, all, pass);
    pass.before = 0;
    pass.answer_before = true;
    if (y.size() > 0) y = narrow(y, y.dim(1) - x.dim(1), y.dim(1));
    fifo_.write(next.input, x.value());
    state = std::move(next);
    return y;
  }

 private:
  Fifo<Scalar, BackendType> fifo_;
};

}  // namespace infty
