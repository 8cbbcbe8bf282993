// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/needs.hpp>
#include <infty/nn/place_encoding.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// How far the rows of a `WithPlaces` are, and what stands inside remembers.
template <class InnerState>
struct WithPlacesState {
  RowCounts read;    ///< vectors that each row has read since it was fresh
  InnerState inner;  ///< of the stack

  template <class Visitor>
  void visit(Visitor&& see) {
    see("read", read);
    see("inner", inner);
  }
};

/// A decorator: sinusoidal encodings of the places in a row, added to what a stack is given
/// [Vaswani et al. 2017, §3.5]. Places go on from segment to segment until a row is reset, each of
/// its own, and none costs more than the first. For stacks of mixers that know of no order, as sums
/// in the place of attention are: their papers' models have such encodings.
///
/// Memory tokens that ride through it from outside are counted as vectors; put inside, as a
/// decorator of the stack, they have no places.
template <class Inner>
class WithPlaces {
  static_assert(Layer<Inner>, "WithPlaces: the inner layer" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Inner>, "WithPlaces: the inner layer" INFTY_NO_STATE);
  static_assert(detail::makes_state<Inner>, "WithPlaces: the inner layer" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Inner>, "WithPlaces: the inner layer" INFTY_NO_FORWARD);

 public:
  using Scalar = typename Inner::Scalar;
  using BackendType = typename Inner::BackendType;
  using V = Variable<Scalar, BackendType>;
  using State = WithPlacesState<StateOf<Inner>>;

  static constexpr bool answers_first = infty::answers_first<Inner>;  ///< see `Pass::first`

  Inner inner;  ///< the stack

  /// Puts places in front of a stack.
  explicit WithPlaces(Inner stack) : inner(std::move(stack)) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    require_rows("WithPlaces::make_state", batch);
    return {RowCounts(static_cast<std::size_t>(batch), 0),
            infty::make_state(inner, batch, first_row)};
  }

  /// [B, L, d] -> [B, L, d], moving the state on.
  /// @throws infty::ShapeError, infty::ValueError for an odd d or a row that is at the end of all
  /// places (`most_places`); then the state is as it was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    require<ShapeError>(x.shape().rank() == 3 && x.dim(0) == std::ssize(state.read), "WithPlaces",
                        "x is ", x.shape(), ": it must be [", state.read.size(),
                        ", L, d], the state's rows");
    State next = state;
    const Index length = x.dim(1);
    const V places(place_encoding<Scalar, BackendType>(state.read, length, x.dim(2)));
    const V y = run_layer(inner, next.inner, add(x, places), pass);
    for (Index& read : next.read) read += length;
    state = std::move(next);
    return y;
  }
};

/// A mixer in whose `TransformerLM` places are added to the embeddings: as with
/// `TransformerLM<PlacedMixer<LinearAttention<float>>>`.
template <class Mixer>
struct PlacedMixer : Mixer {
  using Mixer::Mixer;
  template <class Stack>
  using Around = WithPlaces<Stack>;  ///< what the model puts around its blocks
};

}  // namespace infty
