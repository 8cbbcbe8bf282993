// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <tuple>
#include <utility>

#include <infty/core/needs.hpp>
#include <infty/model/block.hpp>
#include <infty/model/blocks.hpp>
#include <infty/model/fwd.hpp>
#include <infty/model/language_model.hpp>
#include <infty/model/layers.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/nn/adaptive_embedding.hpp>
#include <infty/nn/adaptive_softmax.hpp>

namespace infty {

/// The embedding of a `TransformerLM`: vectors of tokens times the root of d, with dropout
/// [Vaswani et al. 2017, §3.4].
template <class T, class Backend = EigenBackend>
class ScaledEmbedding : public AdaptiveEmbedding<T, Backend> {
 public:
  using AdaptiveEmbedding<T, Backend>::AdaptiveEmbedding;

  /// tokens [B, L] -> [B, L, d]. @throws as `AdaptiveEmbedding::forward`
  Variable<T, Backend> forward(const Tensor<Index, Backend>& tokens, Pass<T, Backend>& pass) const {
    const double d = static_cast<double>(this->config().model_dim);
    return pass.dropped(
        AdaptiveEmbedding<T, Backend>::forward(tokens, static_cast<T>(std::sqrt(d))));
  }

  /// The vectors of tokens as the table has them, without the root and dropout: [B, L] -> [B, L,
  /// d].
  /// @throws as `AdaptiveEmbedding::forward`
  Variable<T, Backend> vectors(const Tensor<Index, Backend>& tokens) const {
    return AdaptiveEmbedding<T, Backend>::forward(tokens);
  }
};

/// The head of a `TransformerLM`: a softmax over the vocabulary, in clusters if there are cutoffs.
template <class T, class Backend = EigenBackend>
class SoftmaxHead : public AdaptiveSoftmax<T, Backend> {
 public:
  using V = Variable<T, Backend>;

  /// Makes a head of the embedding's sizes, with its table where `config.tie_embedding` says so.
  SoftmaxHead(const ScaledEmbedding<T, Backend>& embedding, Random random,
              const TransformerConfig& config)
      : AdaptiveSoftmax<T, Backend>(embedding, random, config.tie_embedding,
                                    config.tie_projections),
        clustered_(!config.cutoffs.empty()) {}

  /// Logits [..., vocabulary] of [..., d], with cutoffs the logarithms of probabilities.
  V logits(const V& hidden) const {
    return clustered_ ? this->log_probabilities(hidden) : this->head(hidden);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    if (clustered_ || !this->projections.empty()) {
      see("softmax", static_cast<AdaptiveSoftmax<T, Backend>&>(*this));
    } else if (!this->weights.empty()) {       // else moved from
      see("output_weight", this->weights[0]);  // the embedding's, where they are tied
      see("output_bias", this->biases[0]);
    }
  }

 private:
  bool clustered_;
};

namespace detail {

/// The mixer itself, behind what `TransformerLM` asks of it.
template <class Mixer>
struct CheckedMixer {
  static_assert(Layer<Mixer>, "TransformerLM: the mixer" INFTY_NO_VISIT);
  static_assert(state_fits<Mixer>, "TransformerLM: the mixer" INFTY_NO_STATE);
  static_assert(makes_state<Mixer>, "TransformerLM: the mixer" INFTY_NO_MAKE_STATE);
  static_assert(runs<Mixer>, "TransformerLM: the mixer" INFTY_NO_FORWARD);
  static_assert(
      requires(const typename Mixer::Config& config, AttentionSizes sizes, Random random) {
        Mixer(config, sizes, random);
      },
      "TransformerLM: the mixer has no Config, the type of its constants, or cannot be made of "
      "`Mixer(Config, AttentionSizes, Random)`");
  using Type = Mixer;
};

/// The body of a transformer: a stack of blocks, inside the decorator that the mixer asks for.
template <class Mixer>
struct BodyOf {
  using Stack = Layers<Block<Mixer>>;
  using type = Stack;
  static type make(Stack stack) { return stack; }
};
template <class Mixer>
  requires requires { typename Mixer::template Around<Layers<Block<Mixer>>>; }
struct BodyOf<Mixer> {
  using Stack = Layers<Block<Mixer>>;
  using type = typename Mixer::template Around<Stack>;
  static type make(Stack stack) { return type(std::move(stack)); }
};

}  // namespace detail

/// A transformer with memory: token embedding, blocks of a mixer (attention and what it makes of
/// the past) and a feed-forward network, and a softmax over the vocabulary. With
/// `InftyMemory<float>` it is the ∞-former [Martins et al. 2022], with `ShortTermMemory<float>` the
/// Transformer-XL [Dai et al. 2019], with `NoMemory<float>` a transformer of segments.
///
/// A mixer is made by `Mixer(Config, AttentionSizes, Random)`; `sibling(random)`, where it has
/// that, makes those of the layers behind the first, with whatever layers share. One that needs a
/// decorator around the stack names it, `template <class Stack> using Around`.
template <class Mixer>
class TransformerLM : public LanguageModel<
                          ScaledEmbedding<typename Mixer::Scalar, typename Mixer::BackendType>,
                          typename detail::BodyOf<typename detail::CheckedMixer<Mixer>::Type>::type,
                          SoftmaxHead<typename Mixer::Scalar, typename Mixer::BackendType>> {
  using T = typename Mixer::Scalar;
  using Backend = typename Mixer::BackendType;
  using Parts = detail::BodyOf<Mixer>;
  using Base =
      LanguageModel<ScaledEmbedding<T, Backend>, typename Parts::type, SoftmaxHead<T, Backend>>;

 public:
  using typename Base::PassType;
  using typename Base::State;
  using typename Base::Tokens;
  using typename Base::V;
  using MixerType = Mixer;
  using MemoryConfig = typename Mixer::Config;

  /// Makes a model with fresh weights. What is drawn comes from `random`: the same seed makes the
  /// same model, on every backend and with any number of threads.
  /// @throws infty::ValueError if one of the configurations is not valid
  explicit TransformerLM(TransformerConfig config, MemoryConfig memory = {},
                         Random random = Random(0))
      : TransformerLM(
            ScaledEmbedding<T, Backend>((config.validate(), config.adaptive()), random.split(0)),
            config, memory, random) {}

  /// The sizes as given.
  const TransformerConfig& config() const { return config_; }
  /// The mixer's constants as given.
  const MemoryConfig& memory_config() const { return memory_config_; }
  /// What another one like this is made from.
  std::tuple<TransformerConfig, MemoryConfig> configs() const { return {config_, memory_config_}; }

  /// Reads a segment, as `LanguageModel::forward`, with the configuration's dropout where the pass
  /// brings random numbers, and behind the last layer too. @throws as there
  V forward(State& state, const Tokens& tokens, PassType& pass) const {
    pass.dropout = config_.dropout;
    return pass.dropped(Base::forward(state, tokens, pass));
  }

  /// Reads a segment in a pass of which nobody wants to know more than the answer.
  V forward(State& state, const Tokens& tokens) const { return Base::forward(state, tokens); }

 private:
  TransformerLM(ScaledEmbedding<T, Backend> table, const TransformerConfig& config,
                const MemoryConfig& memory, const Random& random)
      : Base(table, Parts::make(blocks<Mixer>(config, memory, random)),
             SoftmaxHead<T, Backend>(table, random.split(1), config)),
        config_(config),
        memory_config_(memory) {}

  TransformerConfig config_;
  MemoryConfig memory_config_;
};

namespace detail {

/// Refuses a model that has not the parameters that its configuration says.
/// @throws infty::ValueError for one that was moved from
template <class Mixer>
void require_parameters(const char* op, const TransformerLM<Mixer>& model) {
  require(!model.embedding.weights.empty(), op,
          "the model's parameters are not there: it was moved from");
}

}  // namespace detail

}  // namespace infty

#if defined(INFTY_COMPILED) && !defined(__CUDACC__)
#include <infty/model/compiled.hpp>
#endif
