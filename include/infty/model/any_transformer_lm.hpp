// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include <infty/core/error.hpp>
#include <infty/memory/memory.hpp>
#include <infty/model/block.hpp>
#include <infty/model/fwd.hpp>
#include <infty/model/language_model.hpp>
#include <infty/model/layers.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/any_layer.hpp>
#include <infty/nn/attention_sizes.hpp>

namespace infty {

/// A transformer whose mixers, feeds and decorators are chosen while the program runs: what
/// `TransformerLM` is, of any layers. One made of the mixers of a `TransformerLM` and from the same
/// random numbers has the same weights, under the same names, and computes the same.
template <class T, class Backend>
class AnyTransformerLM : public LanguageModel<ScaledEmbedding<T, Backend>, AnyLayer<T, Backend>,
                                              SoftmaxHead<T, Backend>> {
  using Base =
      LanguageModel<ScaledEmbedding<T, Backend>, AnyLayer<T, Backend>, SoftmaxHead<T, Backend>>;

 public:
  using typename Base::PassType;
  using typename Base::State;
  using typename Base::Tokens;
  using typename Base::V;
  using LayerType = AnyLayer<T, Backend>;  ///< of all parts
  /// Makes the mixer or the feed of layer i, 0 the lowest, with weights drawn from `random`.
  using Make = std::function<LayerType(Index i, Random random)>;
  /// Puts something around the block of layer i, a memory of its own say.
  using DecorateBlock = std::function<LayerType(Index i, LayerType block, Random random)>;
  /// Puts something around the stack, memory tokens say.
  using Decorate = std::function<LayerType(LayerType stack, Random random)>;

  /// The parts of a model.
  struct Parts {
    Make mixer;                ///< of every layer
    Make feed = {};            ///< of every layer; empty, or returning no layer: `FeedForward`
    DecorateBlock block = {};  ///< around every block; empty for nothing
    Decorate around = {};      ///< around the stack; empty for nothing
  };

  /// Makes a model with fresh weights. @throws infty::ValueError if the configuration is not valid,
  /// or there are no mixers; what the parts throw
  AnyTransformerLM(TransformerConfig config, const Parts& parts, Random random = Random(0))
      : AnyTransformerLM(
            ScaledEmbedding<T, Backend>((config.validate(), config.adaptive()), random.split(0)),
            config, parts, random) {}

  /// The sizes as given.
  const TransformerConfig& config() const { return config_; }

  /// Reads a segment, as `LanguageModel::forward`, with the configuration's dropout where the pass
  /// brings random numbers, and behind the last layer too. @throws as there
  V forward(State& state, const Tokens& tokens, PassType& pass) const {
    pass.dropout = config_.dropout;
    return pass.dropped(Base::forward(state, tokens, pass));
  }

  /// Reads a segment in a pass of which nobody wants to know more than the answer.
  V forward(State& state, const Tokens& tokens) const { return Base::forward(state, tokens); }

 private:
  AnyTransformerLM(ScaledEmbedding<T, Backend> table, const TransformerConfig& config,
                   const Parts& parts, const Random& random)
      : Base(table, body(config, parts, random),
             SoftmaxHead<T, Backend>(table, random.split(1), config)),
        config_(config) {}

  static LayerType body(const TransformerConfig& config, const Parts& parts, const Random& random) {
    require(parts.mixer != nullptr, "AnyTransformerLM", "there is nothing that makes mixers");
    Layers<LayerType> stack;
    for (Index i = 0; i < config.layers; ++i) {
      const Random own = random.split(static_cast<std::uint64_t>(2 + i));
      LayerType mixer = parts.mixer(i, own);
      LayerType feed = parts.feed ? parts.feed(i, own.split(1)) : LayerType();
      LayerType made =
          feed
              ? block(config, std::move(mixer), std::move(feed))
              : block(config, std::move(mixer),
                      FeedForward<T, Backend>(config.model_dim, config.feed_forward, own.split(1)));
      stack.layers.push_back(
          parts.block ? parts.block(i, std::move(made),
                                    random.split(first_of_blocks + static_cast<std::uint64_t>(i)))
                      : std::move(made));
    }
    LayerType all(std::move(stack));
    return parts.around ? parts.around(std::move(all),
                                       random.split(2 + static_cast<std::uint64_t>(config.layers)))
                        : all;
  }

  static constexpr std::uint64_t first_of_blocks = std::uint64_t{1} << 32;  // apart from layers'

  template <class Feed>
  static LayerType block(const TransformerConfig& config, LayerType mixer, Feed feed) {
    return Block<LayerType, Feed>{.mixer = std::move(mixer),
                                  .mixer_norm = LayerNorm<T, Backend>(config.model_dim),
                                  .feed = std::move(feed),
                                  .feed_norm = LayerNorm<T, Backend>(config.model_dim),
                                  .norms_in_front = config.pre_norm};
  }

  TransformerConfig config_;
};

/// What makes the mixers of an `AnyTransformerLM` as a `TransformerLM<Mixer>` makes its own: those
/// behind the first are its siblings, and share with it what they share.
template <class Mixer>
auto mixers_of(typename Mixer::Config config, AttentionSizes sizes) {
  using Layer = AnyLayer<typename Mixer::Scalar, typename Mixer::BackendType>;
  return [config = std::move(config), sizes, first = std::optional<Mixer>()](
             Index i, Random random) mutable -> Layer {
    const auto make = [&](const Random& own) { return Mixer(config, sizes, own); };
    if (i == 0) first.emplace(make(random));
    return i == 0 ? *first : sibling_of(*first, random, make);
  };
}

}  // namespace infty
