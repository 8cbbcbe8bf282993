// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/needs.hpp>
#include <infty/memory/slot_writer.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// What a `RecurrentSlots` remembers.
template <class InnerState, class T, class Backend>
struct RecurrentSlotsState {
  InnerState inner;            ///< of the stack
  Variable<T, Backend> slots;  ///< [batch, m, d], zeros in a fresh row; a gradient flows to them
  RowCounts written;           ///< segments that each row's slots have taken in; 0: it is fresh

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("slots", slots);
    see("written", written);
  }
};

/// A decorator: m slots beside any stack of layers, which all of them may read (`pass.slots`, as
/// the `SlotReader` of a `Memformer` does) and which a writer makes anew behind the last, of the
/// slots and of what the stack answers [Wu et al. 2022, §3]. A gradient flows through as many
/// segments as are recorded; `replayed_loss` (train/replay.hpp) lets it flow through any number.
///
/// A writer has `Config`, is made of `(Config, Index d, Random)`, and has `initial()` -> [m, d] and
/// `forward(slots, x)`, [B, m, d] and [B, L, d] -> [B, m, d]; one that is to write rows that are
/// padded takes how many of x, the last ones, count, [B] or empty, besides. Memory tokens are not
/// written.
///
/// A pass that is traced is shown what slots read while they are written, of the words,
/// "writer_weights" [batch, H, m, L], and of themselves, "writer_kept" [batch, H, m], by writers
/// that tell (`weights(slots, x, visible)`).
template <class Inner,
          class Writer = SlotWriter<typename Inner::Scalar, typename Inner::BackendType>>
class RecurrentSlots {
  static_assert(Layer<Inner>, "RecurrentSlots: the inner layer" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Inner>, "RecurrentSlots: the inner layer" INFTY_NO_STATE);
  static_assert(detail::makes_state<Inner>, "RecurrentSlots: the inner layer" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Inner>, "RecurrentSlots: the inner layer" INFTY_NO_FORWARD);
  static_assert(Layer<Writer>, "RecurrentSlots: the writer" INFTY_NO_VISIT);

 public:
  using Scalar = typename Inner::Scalar;
  using BackendType = typename Inner::BackendType;
  using V = Variable<Scalar, BackendType>;
  using State = RecurrentSlotsState<StateOf<Inner>, Scalar, BackendType>;

  Inner inner;    ///< the stack beside the slots
  Writer writer;  ///< makes the next slots

  /// Puts a writer behind a stack, whose answers are as wide as its slots.
  RecurrentSlots(Inner stack, Writer own) : inner(std::move(stack)), writer(std::move(own)) {}

  /// Makes a writer of slots of width d behind a stack. @throws as the writer's constructor
  RecurrentSlots(Inner stack, typename Writer::Config config, Index d, Random random)
      : RecurrentSlots(std::move(stack), Writer(config, d, random)) {}

  /// Puts that writer behind a stack which its mixers ask for, `mixer.make_writer()`.
  explicit RecurrentSlots(Inner stack)
    requires requires { Writer(stack.layers.front().mixer.make_writer()); }
      : inner(std::move(stack)), writer(inner.layers.front().mixer.make_writer()) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("writer", writer);
  }

  /// Whether padding changes neither answers nor slots, which is the stack's to say.
  bool reads_padded() const { return writes_padded && infty::reads_padded(inner); }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    require_rows("RecurrentSlots::make_state", batch);
    const Shape one = slots_shape();
    return {infty::make_state(inner, batch, first_row),
            V(Tensor<Scalar, BackendType>::zeros(Shape{batch, one[0], one[1]})),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// What the next segment's vectors read -> [batch, m, d]: the state's slots, and of fresh rows
  /// the writer's first ones. @throws infty::ShapeError
  V slots(const State& state) const {
    check(state);
    const RowCounts& written = state.written;
    if (std::find(written.begin(), written.end(), 0) == written.end()) return state.slots;
    std::vector<Scalar> fresh;
    for (const Index n : written) fresh.push_back(n == 0 ? Scalar(1) : Scalar(0));
    const Shape one = slots_shape();
    const V mask(Tensor<Scalar, BackendType>::from(Shape{state.slots.dim(0), 1, 1}, fresh));
    return state.slots + mask * reshape(writer.initial(), Shape{1, one[0], one[1]});
  }

  /// [B, L, d] -> [B, L, d], moving the state on.
  /// @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    const V read = slots(state);
    require<ShapeError>(x.shape().rank() == 3 && x.dim(0) == read.dim(0) &&
                            x.dim(2) == read.dim(2) && x.dim(1) > pass.before + pass.behind,
                        "RecurrentSlots", "x is ", x.shape(), " with ", pass.before, " and ",
                        pass.behind, " memory tokens, the state's slots are ", state.slots.shape(),
                        ": they must be [B, L, d] with a word at least, and [B, m, d]");
    State next = state;
    const bool answer = std::exchange(pass.answer, true);
    V outer = std::exchange(pass.slots, read);
    const V y = run_layer(inner, next.inner, x, pass);
    pass.slots = std::move(outer);
    pass.answer = answer;
    const Index end = y.dim(1) - pass.behind;  // what is in front may have been left out
    const Index words = x.dim(1) - pass.before - pass.behind;
    const V said = narrow(y, end - words, end);
    if constexpr (requires { writer.weights(read, said, pass.visible); })
      if (pass.traced) {
        const auto weights = writer.weights(read, said, pass.visible);
        pass.show("writer_weights", V(weights.tokens), "row head slot word");
        pass.show("writer_kept", V(weights.own), "row head slot");
      }
    if constexpr (writes_padded)
      next.slots = writer.forward(read, said, pass.visible);
    else
      next.slots = writer.forward(read, said);
    for (Index& n : next.written) ++n;
    state = std::move(next);
    return answer ? y : V();
  }

 private:
  static constexpr bool writes_padded =
      requires(const Writer& own, const V& x, const Tensor<Index, BackendType>& visible) {
        own.forward(x, x, visible);
      };

  Shape slots_shape() const {
    const auto guard = no_grad();
    return writer.initial().shape();
  }

  void check(const State& state) const {
    const Shape one = slots_shape(), &held = state.slots.shape();
    require<ShapeError>(held.rank() == 3 && held[1] == one[0] && held[2] == one[1] &&
                            held[0] == static_cast<Index>(state.written.size()),
                        "RecurrentSlots", "the state's slots are ", held, " of ",
                        state.written.size(), " rows: they must be [batch, ", one[0], ", ", one[1],
                        "]");
  }
};

}  // namespace infty
