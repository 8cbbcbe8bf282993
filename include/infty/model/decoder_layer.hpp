// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>

#include <infty/core/needs.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/memsizer_layer.hpp>
#include <infty/model/layers.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/nn/cross_attention.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/nn/layer_norm.hpp>

namespace infty {

/// What a `DecoderLayer` remembers: what its mixer has read of the target, and the source.
template <class MixerState, class SourceState>
struct DecoderLayerState {
  MixerState mixer;    ///< of the target
  SourceState source;  ///< keys and values of the source

  template <class Visitor>
  void visit(Visitor&& see) {
    see("mixer", mixer);
    see("source", source);
  }
};

/// A layer of a decoder [Vaswani et al. 2017, §3.1]: a causal mixer of any kind over the target,
/// attention to the source, and a feed-forward network, each with a residual, dropout and a norm,
/// behind the sum or in front. `MemSizerLayer` is the same with MemSizer for both.
template <class Mixer>
struct DecoderLayer {
  using Scalar = typename Mixer::Scalar;
  using BackendType = typename Mixer::BackendType;
  using V = Variable<Scalar, BackendType>;
  using Cross = CrossAttention<Scalar, BackendType>;  ///< how the source is read
  using State = DecoderLayerState<StateOf<Mixer>, typename Cross::State>;
  static_assert(Layer<Mixer>, "DecoderLayer: the mixer" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Mixer>, "DecoderLayer: the mixer" INFTY_NO_STATE);
  static_assert(detail::makes_state<Mixer>, "DecoderLayer: the mixer" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Mixer>, "DecoderLayer: the mixer" INFTY_NO_FORWARD);

  Mixer mixer;                                ///< causal, over the target
  LayerNorm<Scalar, BackendType> mixer_norm;  ///< of width d
  Cross cross;                                ///< attention to the source
  LayerNorm<Scalar, BackendType> cross_norm;  ///< of width d
  FeedForward<Scalar, BackendType> feed;      ///< changes each vector by itself
  LayerNorm<Scalar, BackendType> feed_norm;   ///< of width d
  bool norms_in_front = false;                ///< x + f(norm(x)); otherwise norm(x + f(x))

  template <class Visitor>
  void visit(Visitor&& see) {
    see("mixer", mixer);
    see("mixer_norm", mixer_norm);
    see("cross", cross);
    see("cross_norm", cross_norm);
    see("feed", feed);
    see("feed_norm", feed_norm);
  }

  /// A state of fresh rows, without a source. @throws infty::ValueError unless 1 <= batch <=
  /// `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    return {infty::make_state(mixer, batch, first_row), cross.make_state(batch)};
  }

  /// Takes a source in, [B, S, d], in place of the one before. @param length  how many vectors of
  /// it, the last ones, each row has
  /// @throws infty::ShapeError; then the state is as it was
  void set_source(State& state, const V& source, const RowCounts& length) const {
    cross.set_source(state.source, source, length);
  }

  /// Vectors of the target [B, L, d] -> [B, L, d], each having read those up to itself and the
  /// source. @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    using Norm = InputNorm<Scalar, BackendType>;
    StateOf<Mixer> next = state.mixer;
    V y = run_layer(mixer, next, x, norms_in_front ? Norm(mixer_norm) : Norm(), pass);
    if (pass.answer) {
      y = behind(mixer_norm, pass.add_dropped(x, y));
      y = behind(cross_norm,
                 pass.add_dropped(y, cross.attend(state.source, in_front(cross_norm, y))));
      y = behind(feed_norm, pass.add_dropped(y, feed.forward(in_front(feed_norm, y), pass)));
    }
    state.mixer = std::move(next);
    return y;
  }

 private:
  V in_front(const LayerNorm<Scalar, BackendType>& norm, const V& x) const {
    return norms_in_front ? norm.forward(x) : x;
  }
  V behind(const LayerNorm<Scalar, BackendType>& norm, const V& x) const {
    return norms_in_front ? x : norm.forward(x);
  }
};

/// A stack of decoder layers of a causal mixer with fresh weights, each with attention to the
/// source. @throws infty::ValueError if one of the configurations is not valid
template <class Mixer>
Layers<DecoderLayer<Mixer>> decoder_layers(const TransformerConfig& config,
                                           const typename Mixer::Config& memory,
                                           const Random& random) {
  using Norm = LayerNorm<typename Mixer::Scalar, typename Mixer::BackendType>;
  config.validate();
  const AttentionSizes sizes = config.attention_sizes();
  const Index d = config.model_dim;
  Layers<DecoderLayer<Mixer>> made;
  for (Index i = 0; i < config.layers; ++i) {
    const Random own = random.split(static_cast<std::uint64_t>(2 + i));
    const auto make = [&](const Random& r) { return Mixer(memory, sizes, r); };
    made.layers.push_back(
        {.mixer = i == 0 ? make(own) : sibling_of(made.layers.front().mixer, own, make),
         .mixer_norm = Norm(d),
         .cross = typename DecoderLayer<Mixer>::Cross({}, sizes, own.split(2)),
         .cross_norm = Norm(d),
         .feed = {d, config.feed_forward, own.split(1)},
         .feed_norm = Norm(d),
         .norms_in_front = config.pre_norm});
  }
  return made;
}

/// A stack of MemSizer's decoder layers with fresh weights. The configuration of the layer says
/// how wide its feed is and where its norms are.
/// @throws infty::ValueError if one of the configurations is not valid
template <class T, class Backend = EigenBackend>
Layers<MemSizerLayer<T, Backend>> memsizer_layers(const TransformerConfig& config,
                                                  const MemSizerLayerConfig& layer,
                                                  const Random& random) {
  config.validate();
  Layers<MemSizerLayer<T, Backend>> made;
  for (Index i = 0; i < config.layers; ++i)
    made.layers.emplace_back(layer, config.attention_sizes(),
                             random.split(static_cast<std::uint64_t>(2 + i)));
  return made;
}

}  // namespace infty
