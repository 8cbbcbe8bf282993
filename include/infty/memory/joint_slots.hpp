// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/joint_slot_layer.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/slot_reader.hpp>

namespace infty {

/// The constants of a `JointSlots`: those of the program memformers' membart-base.
struct JointSlotConfig {
  Index slots = 64;           ///< m, that a row has
  Index layers = 6;           ///< one above the other
  Index heads = 12;           ///< H, which divide d
  Index feed_forward = 3072;  ///< width of the inner layer of the feeds

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    require_at_least("JointSlotConfig", "slots", slots, 1);
    require_at_least("JointSlotConfig", "layers", layers, 1);
    require_at_least("JointSlotConfig", "heads", heads, 1);
    require_at_least("JointSlotConfig", "feed_forward", feed_forward, 1);
    require_sizes("JointSlotConfig", {{"slots", slots}});
    require_sizes("JointSlotConfig", {{"heads", heads}});
    require_sizes("JointSlotConfig", {{"layers", layers}, {"feed_forward", feed_forward}});
  }
};

/// What a `JointSlots` remembers.
template <class T, class Backend>
struct JointSlotsState {
  Variable<T, Backend> slots;  ///< [batch, m, d], zeros in a fresh row; a gradient flows to them

  template <class Visitor>
  void visit(Visitor&& see) {
    see("slots", slots);
  }
};

/// The later Memformer of its first author [Wu & Yu 2022; memformers, models/membart], an encoder:
/// slots go through all layers beside the words. A segment begins with s = LayerNorm(m + v), by
/// which slots forget, and ends with m <- g m' + (1 - g) s, where m' is what has become of s and g,
/// one number a slot, is a gate. Words see the whole segment, so it scores no next token; a body,
/// or a decorator of nothing: `Layers` of something else may stand behind it.
template <class T, class Backend>
class JointSlots {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = JointSlotConfig;
  using State = JointSlotsState<T, Backend>;

  std::vector<JointSlotLayer<T, Backend>> layers;  ///< the lowest first
  V bias;                                          ///< v, [m, d]
  LayerNorm<T, Backend> norm;                      ///< of the slots that a segment begins with
  GeluFeed<T, Backend> gate;                       ///< d -> 1, in front of a sigmoid

  /// Makes all layers, with weights drawn as `Linear` draws them, v from a standard normal
  /// distribution. @param d  width of words and slots
  /// @throws infty::ValueError for a configuration that cannot be
  JointSlots(Config config, Index d, Random random)
      : norm((config.validate(), detail::require_slot_heads("JointSlots", d, config.heads), d)),
        gate(d, d, random.split(1), 1),
        config_(config) {
    require_sizes("JointSlots", {{"slots", config.slots}, {"d", d}});
    require_sizes("JointSlots", {{"feed_forward", config.feed_forward}, {"d", d}});
    bias = Embedding<T, Backend>(config.slots, d, random.split(0)).weight;
    for (Index i = 0; i < config.layers; ++i) {
      const Random own = random.split(static_cast<std::uint64_t>(2 + i));
      layers.push_back({.slots = {d, config.feed_forward, own.split(0)},
                        .words = {d, config.feed_forward, own.split(1)},
                        .heads = config.heads});
    }
  }

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("layers", layers);
    see("bias", bias);
    see("norm", norm);
    see("gate", gate);
  }

  /// Padding in front, as the pass tells it, changes no answer.
  bool reads_padded() const { return true; }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index = 0) const {
    require_rows("JointSlots::make_state", batch);
    return {V(Tensor<T, Backend>::zeros(Shape{batch, bias.dim(0), bias.dim(1)}))};
  }

  /// Words [B, L, d] -> [B, L, d], each having seen all of them, and moves the state on.
  /// @throws infty::ShapeError, and where there are memory tokens infty::ValueError; then the state
  /// is as it was
  V forward(State& state, const V& x, Pass<T, Backend>& pass) const {
    return forward(state, x, pass.visible, pass);
  }

  /// The same of rows that are padded in front.
  /// @param visible  [B], how many words of a row (the last ones) anybody sees; empty for all.
  /// Answers at padding mean nothing.
  V forward(State& state, const V& x, const Tensor<Index, Backend>& visible,
            Pass<T, Backend>& pass) const {
    const Index slots = bias.dim(0), d = bias.dim(1);
    require<ShapeError>(x.shape().rank() == 3 && x.dim(1) >= 1 && x.dim(2) == d &&
                            state.slots.shape() == Shape{x.dim(0), slots, d},
                        "JointSlots", "x is ", x.shape(), ", the state's slots are ",
                        state.slots.shape(), ": they must be [B, L, ", d, "], L >= 1, and [B, ",
                        slots, ", ", d, "]");
    require(pass.before == 0 && pass.behind == 0, "JointSlots", "there are ", pass.before, " and ",
            pass.behind, " memory tokens around the segment: slots beside the words take none");
    const V start = norm.forward(state.slots + bias);
    V m = start, y = x;
    for (const auto& layer : layers) {
      auto [next, words] = layer.forward(m, y, visible, pass);
      m = std::move(next);
      y = std::move(words);
    }
    const V g = sigmoid(gate.forward(m, pass));  // [B, m, 1]
    state.slots = g * m + (T(1) - g) * start;
    return pass.answer ? y : V();
  }

 private:
  Config config_;
};

}  // namespace infty
