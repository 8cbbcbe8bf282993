// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/needs.hpp>
#include <infty/memory/gru_slot_writer.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/recurrent_slots.hpp>
#include <infty/nn/attention_sizes.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/sequence_layer.hpp>
#include <infty/nn/slot_reader.hpp>

namespace infty {

/// The constants of a `Memformer`.
template <class AttentionConfig, class WriterConfig>
struct MemformerConfig {
  AttentionConfig attention = {};  ///< of the attention to the segment
  WriterConfig slots = {};         ///< of the slots, their reader and their writer
};

/// What a layer of a `Memformer` remembers; the slots are its stack's.
template <class AttentionState>
struct MemformerState {
  AttentionState attention;  ///< of the attention

  template <class Visitor>
  void visit(Visitor&& see) {
    see("attention", attention);
  }
};

/// A mixer: attention of any kind and, behind it, a reader of the slots that its stack has, each
/// with a norm in front and added to what came in [Wu et al. 2022, §3.2]. The stack stands in a
/// `RecurrentSlots`, whose writer makes the slots anew behind its last layer: by `SlotWriter`, as
/// in the paper, or by `GruSlotWriter`.
///
/// `TransformerLM<Memformer<NoMemory<float>>>` is one over segments,
/// `Memformer<ShortTermMemory<float>>` has a Transformer-XL's memory besides.
///
/// A pass that is traced is shown how much of each slot the words read, "reader_weights"
/// [batch, H, L, m].
template <class A, class Writer = SlotWriter<typename A::Scalar, typename A::BackendType>>
class Memformer {
  static_assert(Layer<A>, "Memformer: the attention" INFTY_NO_VISIT);
  static_assert(detail::state_fits<A>, "Memformer: the attention" INFTY_NO_STATE);
  static_assert(detail::makes_state<A>, "Memformer: the attention" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<A>, "Memformer: the attention" INFTY_NO_FORWARD);

 public:
  using Scalar = typename A::Scalar;
  using BackendType = typename A::BackendType;
  using V = Variable<Scalar, BackendType>;
  using Config = MemformerConfig<typename A::Config, typename Writer::Config>;
  using State = MemformerState<StateOf<A>>;
  using Norm = InputNorm<Scalar, BackendType>;
  /// What a stack of such layers stands in, to hold the slots.
  template <class Stack>
  using Around = RecurrentSlots<Stack, Writer>;

  A attention;                                 ///< to the segment, and what else it remembers
  LayerNorm<Scalar, BackendType> reader_norm;  ///< in front of the reader
  SlotReader<Scalar, BackendType> reader;      ///< of the slots

  /// Makes attention and reader, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit Memformer(const Config& config, AttentionSizes sizes, Random random = Random(0))
      : attention(config.attention, sizes, random),
        reader_norm(sizes.model_dim),
        config_(config),
        sizes_(sizes),
        writer_random_(random.split(4)) {
    config_.slots.validate();
    if (config_.slots.heads == 0) config_.slots.heads = sizes.heads;
    reader = SlotReader<Scalar, BackendType>(sizes.model_dim, config_.slots.heads, random.split(3),
                                             config_.slots.maps);
  }

  /// The same of another layer of the same model, which shares what attention shares.
  Memformer sibling(Random random) const {
    Memformer other(config_, sizes_, random);
    other.attention = sibling_of(attention, random,
                                 [&](Random own) { return A(config_.attention, sizes_, own); });
    return other;
  }

  /// A writer for the slots that this reads, with fresh weights, the same at every call.
  Writer make_writer() const { return Writer(config_.slots, sizes_.model_dim, writer_random_); }

  /// The constants, with the number of heads.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("attention", attention);
    see("reader_norm", reader_norm);
    see("reader", reader);
  }

  /// Whether padding changes no answer, which is the attention's to say.
  bool reads_padded() const { return infty::reads_padded(attention); }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    require_rows("Memformer::make_state", batch);
    return {infty::make_state(attention, batch, first_row)};
  }

  /// Attends, reads `pass.slots`, and moves the state on: [B, L, d] -> [B, L, d], the sum of both.
  /// @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, const Norm& norm, Pass<Scalar, BackendType>& pass) const {
    const Shape& slots = pass.slots.shape();
    require<ShapeError>(slots.rank() == 3 && slots == Shape{x.dim(0), slots[1], sizes_.model_dim},
                        "Memformer", "the pass has slots ", slots, ": they must be [", x.dim(0),
                        ", m, ", sizes_.model_dim, "], which a RecurrentSlots sees to");
    State next = state;
    const V attended = run_layer(attention, next.attention, x, norm, pass);
    V y;
    if (pass.answer) {
      const Index front = x.dim(1) - attended.dim(1);  // may have been left out
      const V seen = (front > 0 ? narrow(x, front, x.dim(1)) : x) + attended;
      const V asking = reader_norm.forward(seen);
      y = attended + reader.forward(asking, pass.slots);
      if (pass.traced) {
        const Index end = asking.dim(1) - pass.behind;
        const V words = narrow(asking, end - (x.dim(1) - pass.before - pass.behind), end);
        pass.show("reader_weights", V(reader.weights(words, pass.slots)), "row head word slot");
      }
    }
    state = std::move(next);
    return y;
  }

 private:
  Config config_;
  AttentionSizes sizes_;
  Random writer_random_;
};

}  // namespace infty
