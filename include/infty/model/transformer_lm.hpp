// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/core/pool.hpp>
#include <infty/model/fwd.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/model/transformer_layer.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/parameters.hpp>

namespace infty {

/// What a `TransformerLM` remembers of every row's tokens: one state a layer.
template <class T, class Backend>
struct TransformerState {
  using Layer = LayerState<T, Backend>;

  std::vector<Layer, PoolAllocator<Layer>> layers;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("layers", layers);
  }
};

/// A transformer's answer to one segment.
template <class T, class Backend = EigenBackend>
struct TransformerOutput {
  using V = Variable<T, Backend>;

  V hidden;                                    ///< [B, L, d], behind the last layer
  std::vector<V, PoolAllocator<V>> densities;  ///< per layer [2, B, H, L] of its long-term read
};

/// A language model with memory: token embedding, layers of attention with relative positions over
/// the segment and a short-term memory (Transformer-XL [Dai et al. 2019]), each with a long-term
/// memory beside it (∞-former [Martins et al. 2022]), and a softmax over the vocabulary. Either
/// memory may be absent. What leaves the short-term memory enters the long-term memory.
template <class T, class Density, class Backend>
class TransformerLM {
 public:
  using V = Variable<T, Backend>;
  using Tokens = Tensor<Index, Backend>;
  using State = TransformerState<T, Backend>;

  Embedding<T, Backend> embedding;  ///< [vocabulary, d]
  V content_bias, position_bias;    ///< u and w of the relative attention, [H, D], of all layers
  std::vector<TransformerLayer<T, Density, Backend>> layers;
  V output_weight, output_bias;  ///< [vocabulary, d] unless tied, and [vocabulary]

  /// @throws infty::ValueError if the configuration is not valid
  explicit TransformerLM(TransformerConfig config, Random random = Random(0))
      : embedding((config.validate(), config.vocabulary), config.model_dim, random.split(0),
                  1 / std::sqrt(static_cast<double>(config.model_dim))),
        config_(std::move(config)) {
    const Shape heads{config_.heads, config_.resolved_head_dim()};
    content_bias = V(Tensor<T, Backend>::zeros(heads), true);
    position_bias = V(Tensor<T, Backend>::zeros(heads), true);
    for (Index i = 0; i < config_.layers; ++i)
      layers.emplace_back(config_, random.split(static_cast<std::uint64_t>(2 + i)));
    output_weight = config_.tie_embedding ? embedding.weight
                                          : detail::uniform_parameter<T, Backend>(
                                                Shape{config_.vocabulary, config_.model_dim},
                                                config_.model_dim, random.split(1));
    output_bias = V(Tensor<T, Backend>::zeros(Shape{config_.vocabulary}), true);
  }

  /// The constants as given.
  const TransformerConfig& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("embedding", embedding);
    see("content_bias", content_bias);
    see("position_bias", position_bias);
    see("layers", layers);
    if (!config_.tie_embedding) see("output_weight", output_weight);
    see("output_bias", output_bias);
  }

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index first_stream = 0) const {
    State state;
    for (const auto& layer : layers) state.layers.push_back(layer.make_state(batch, first_stream));
    return state;
  }

  /// Reads a segment behind what the state remembers, and moves the state on.
  /// @param tokens  [B, L], L >= 1
  /// @param random  for dropout, while training; null for none
  /// @throws infty::ShapeError, infty::ValueError for a token out of range; then the state is as
  /// it was
  TransformerOutput<T, Backend> forward(State& state, const Tokens& tokens,
                                        Random* random = nullptr) const {
    check(state, tokens);
    State next = state;
    TransformerOutput<T, Backend> output;
    const auto call = make_call(tokens, random);
    V x = embed(tokens, random);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      V density;
      x = layers[i].forward(next.layers[i], x, call, &density);
      if (layers[i].long_term) output.densities.push_back(density);
    }
    output.hidden = random ? dropout(x, config_.dropout, *random) : x;
    state = std::move(next);
    return output;
  }

  /// Moves the state on as `forward` does, without an answer: no gradient, and the work of the last
  /// layer is left out. For the text that only the memory is to see.
  /// @param tokens   [B, L], L >= 1
  /// @param segment  >= 0; tokens are read in segments of so many, the last one shorter; 0 reads
  ///                 them as one
  /// @throws as `forward`; infty::ValueError for a negative segment
  void observe(State& state, const Tokens& tokens, Index segment = 0) const {
    check(state, tokens);
    require(segment >= 0, "TransformerLM::observe", "segment is ", segment, ": it must be >= 0");
    const Index batch = tokens.dim(0);
    if constexpr (requires { Backend::for_each_task(batch, [](Index) {}); }) {
      // Rows share nothing. Parts of a few rows, as many as the batch says and not the threads, go
      // through all segments without waiting for each other.
      constexpr Index most_parts = 8;
      const Index rows = (batch + most_parts - 1) / most_parts;
      if (batch > 1) {
        std::vector<State, PoolAllocator<State>> parts(
            static_cast<std::size_t>((batch + rows - 1) / rows));
        Backend::for_each_task(std::ssize(parts), [&](Index i) {
          const Index begin = i * rows, end = std::min(batch, begin + rows);
          State& part = parts[static_cast<std::size_t>(i)];
          part = take_rows(state, begin, end);
          observe_rows(part, tokens.slice(begin, end), segment);
        });
        state = join_rows(parts);
        return;
      }
    }
    State next = state;
    observe_rows(next, tokens, segment);
    state = std::move(next);
  }

  /// Scores of the next token, [..., d] -> [..., vocabulary]. @throws infty::ShapeError
  V logits(const V& hidden) const { return linear(hidden, output_weight, output_bias); }

  /// The regulariser of the densities, the sum of their divergences from the prior of width sigma0
  /// over layers, rows, heads and queries -> scalar   [Martins et al. 2022, Eq. 20, 21].
  V kl_regulariser(const TransformerOutput<T, Backend>& output) const {
    V total(Tensor<T, Backend>::zeros(Shape{}));
    if (output.densities.empty()) return total;
    const T sigma0 = static_cast<T>(layers.front().long_term->config().sigma0);
    for (const V& density : output.densities) total = total + sum(kl(density, sigma0));
    return total;
  }

 private:
  /// The encodings of distances, longest first, grown as needed and shared by copies.
  struct Encodings {
    std::mutex mutex;
    Tensor<T, Backend> table;
  };

  void check(const State& state, const Tokens& tokens) const {
    require<ShapeError>(state.layers.size() == layers.size(), "TransformerLM", "the state has ",
                        state.layers.size(), " layers, the model ", layers.size());
    const Index batch = state.layers.front().short_term.recent.vectors.dim(0);
    require<ShapeError>(tokens.rank() == 2 && tokens.dim(0) == batch && tokens.dim(1) >= 1,
                        "TransformerLM", "tokens are ", tokens.shape(), ": they must be [", batch,
                        ", L], L >= 1");
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const auto& held = state.layers[i];
      require<ShapeError>(
          held.short_term.recent.vectors.shape() ==
                  Shape{batch, layers[i].short_term.most_held(), config_.model_dim} &&
              held.long_term.has_value() == layers[i].long_term.has_value(),
          "TransformerLM", "layer ", i, " of the state was made by another model");
    }
  }

  void observe_rows(State& state, const Tokens& tokens, Index segment) const {
    const auto guard = no_grad();
    const Index length = tokens.dim(1), step = segment > 0 ? segment : length;
    for (Index begin = 0; begin < length; begin += step) {
      const Index end = std::min(length, begin + step);
      const Tokens piece = columns(tokens, begin, end);
      const auto call = make_call(piece, nullptr);
      V x = embed(piece, nullptr);
      for (std::size_t i = 0; i + 1 < layers.size(); ++i)
        x = layers[i].forward(state.layers[i], x, call, nullptr);
      layers.back().observe(state.layers.back(), x);
    }
  }

  /// Columns [begin, end) of tokens [B, L].
  static Tokens columns(const Tokens& tokens, Index begin, Index end) {
    const Index batch = tokens.dim(0), length = tokens.dim(1), width = end - begin;
    if (width == length) return tokens;
    Tokens out(Shape{batch, width});
    detail::copy_rows<Backend>(batch, width, tokens.data() + begin, length, out.data(), width);
    return out;
  }

  V embed(const Tokens& tokens, Random* random) const {
    const V x = embedding.forward(
        tokens, static_cast<T>(std::sqrt(static_cast<double>(config_.model_dim))));
    return random ? dropout(x, config_.dropout, *random) : x;
  }

  LayerCall<T, Backend> make_call(const Tokens& tokens, Random* random) const {
    return {content_bias, position_bias,
            encoding(layers.front().short_term.most_held() + tokens.dim(1)),
            random ? config_.dropout : 0, random};
  }

  Tensor<T, Backend> encoding(Index longest) const {
    const std::lock_guard lock(encodings_->mutex);
    if (encodings_->table.dim(0) < longest)
      encodings_->table = distance_encoding<T, Backend>(longest, config_.model_dim);
    return encodings_->table;
  }

  TransformerConfig config_;
  std::shared_ptr<Encodings> encodings_ = std::make_shared<Encodings>();
};

}  // namespace infty
