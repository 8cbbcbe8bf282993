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

#include <infty/autograd/parameters.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/core/finite.hpp>
#include <infty/core/pool.hpp>
#include <infty/memory/memory_pair.hpp>
#include <infty/model/fwd.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/model/transformer_layer.hpp>
#include <infty/nn/adaptive_embedding.hpp>
#include <infty/nn/adaptive_softmax.hpp>

namespace infty {

/// What a `TransformerLM` remembers of every row's tokens: one state of its memory a layer.
template <class MemoryState>
struct TransformerState {
  std::vector<MemoryState, PoolAllocator<MemoryState>> layers;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("layers", layers);
  }
};

/// A transformer's answer to one segment.
template <class T, class Backend = EigenBackend>
struct TransformerOutput {
  using V = Variable<T, Backend>;

  using Layers = std::vector<V, PoolAllocator<V>>;

  V hidden;          ///< [B, L, d], behind the last layer
  Layers densities;  ///< [2, B, H, L] of every layer's long-term read, where there is one
  Layers auxiliary;  ///< a scalar of every layer, where its memory has a loss of its own
};

/// A language model with memory: token embedding, layers of attention with relative positions over
/// the segment and what memory M makes of the past, and a softmax over the vocabulary. M is a
/// template of a `Memory`: `InftyMemory` makes it the ∞-former [Martins et al. 2022],
/// `ShortTermMemory` the Transformer-XL [Dai et al. 2019], `NoMemory` a transformer of segments.
template <class T, template <class, class> class M, class Backend>
class TransformerLM {
 public:
  using MemoryType = M<T, Backend>;
  static_assert(Memory<MemoryType>);
  using V = Variable<T, Backend>;
  using Tokens = Tensor<Index, Backend>;
  using MemoryConfig = typename MemoryType::Config;
  using State = TransformerState<typename MemoryType::State>;
  using Output = TransformerOutput<T, Backend>;

  AdaptiveEmbedding<T, Backend> embedding;  ///< without cutoffs a table [vocabulary, d]
  BiasesOf<MemoryType> biases;              ///< of the relative attention, of all layers
  std::vector<TransformerLayer<MemoryType>> layers;
  AdaptiveSoftmax<T, Backend> softmax;  ///< without cutoffs one matrix and bias; may be tied

  /// @throws infty::ValueError if one of the configurations is not valid
  explicit TransformerLM(TransformerConfig config, MemoryConfig memory = {},
                         Random random = Random(0))
      : embedding((config.validate(), config.adaptive()), random.split(0)),
        biases(config.attention_sizes()),
        softmax(embedding, random.split(1), config.tie_embedding, config.tie_projections),
        config_(std::move(config)),
        memory_config_(std::move(memory)) {
    for (Index i = 0; i < config_.layers; ++i)
      layers.emplace_back(config_, memory_config_, random.split(static_cast<std::uint64_t>(2 + i)));
  }

  /// The sizes as given.
  const TransformerConfig& config() const { return config_; }
  /// The memory's constants as given.
  const MemoryConfig& memory_config() const { return memory_config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("embedding", embedding);
    biases.visit(see);
    see("layers", layers);
    if (config_.cutoffs.empty() && softmax.projections.empty()) {
      if (softmax.weights.empty()) return;       // moved from
      see("output_weight", softmax.weights[0]);  // the embedding's, where they are tied
      see("output_bias", softmax.biases[0]);
    } else {
      see("softmax", softmax);
    }
  }

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index first_stream = 0) const {
    State state;
    for (const auto& layer : layers)
      state.layers.push_back(layer.memory.make_state(batch, first_stream));
    return state;
  }

  /// Reads a segment behind what the state remembers, and moves the state on.
  /// @param tokens  [B, L], L >= 1
  /// @param random  for dropout, while training; null for none
  /// @throws infty::ShapeError, infty::ValueError for a token out of range, infty::NonFiniteError
  /// that names the layer for NaN or infinity (while a tape records, the loss tells of these); then
  /// the state is as it was
  Output forward(State& state, const Tokens& tokens, Random* random = nullptr) const {
    check(state, tokens);
    State next = state;
    Output output;
    auto call = make_call(tokens, random);
    V x = embed(tokens, random), past;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      call.renew = i + 1 < layers.size();
      auto of_layer = forward_layer(i, next.layers[i], x, call);
      x = std::move(of_layer.hidden);
      past = std::move(of_layer.past);
      call.past = &past;
      if (of_layer.density.size() > 0) output.densities.push_back(std::move(of_layer.density));
      if (of_layer.auxiliary.size() > 0) output.auxiliary.push_back(std::move(of_layer.auxiliary));
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

  /// Scores of the next token, [..., d] -> [..., vocabulary]: logits, or with cutoffs the
  /// logarithms of its probabilities. @throws infty::ShapeError
  V logits(const V& hidden) const {
    return config_.cutoffs.empty() ? softmax.head(hidden) : softmax.log_probabilities(hidden);
  }

  /// The losses of next tokens, -log p: hidden [B, L, d] and targets [B, L] -> [B, L]; 0 where the
  /// target is `ignore_index`. With cutoffs this is much less work than all of `logits`.
  /// @throws infty::ShapeError, infty::ValueError for a target out of range
  V losses(const V& hidden, const Tokens& targets) const { return softmax.losses(hidden, targets); }

  /// The regulariser of the densities, the sum of their divergences from the prior of width sigma0
  /// over layers, rows, heads and queries -> scalar   [Martins et al. 2022, Eq. 20, 21]. 0 where
  /// there is no long-term memory.
  V kl_regulariser(const Output& output) const {
    V total(Tensor<T, Backend>::zeros(Shape{}));
    if constexpr (requires(const V& density) { layers.front().memory.kl(density); })
      if (!layers.empty())
        for (const V& density : output.densities)
          total = total + sum(layers.front().memory.kl(density));
    return total;
  }

  /// The sum over layers of what their memories lose by themselves -> scalar; 0 for most.
  V auxiliary_loss(const Output& output) const {
    V total(Tensor<T, Backend>::zeros(Shape{}));
    for (const V& loss : output.auxiliary) total = total + loss;
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
    require(!layers.empty(), "TransformerLM", "there are no layers: the model was moved from");
    const Index batch = detail::checked_rows("TransformerLM", state);
    require<ShapeError>(tokens.rank() == 2 && tokens.dim(0) == batch && tokens.dim(1) >= 1,
                        "TransformerLM", "tokens are ", tokens.shape(), ": they must be [", batch,
                        ", L], L >= 1");
  }

  void observe_rows(State& state, const Tokens& tokens, Index segment) const {
    const auto guard = no_grad();
    const Index length = tokens.dim(1), step = segment > 0 ? segment : length;
    for (Index begin = 0; begin < length; begin += step) {
      const Index end = std::min(length, begin + step);
      const Tokens piece = columns(tokens, begin, end);
      auto call = make_call(piece, nullptr);
      V x = embed(piece, nullptr), past;
      for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
        auto of_layer = forward_layer(i, state.layers[i], x, call);
        x = std::move(of_layer.hidden);
        past = std::move(of_layer.past);
        call.past = &past;
      }
      in_layer(layers.size() - 1, [&] { layers.back().observe(state.layers.back(), x, call); });
    }
  }

  /// f(), whose NonFiniteError names the layer.
  template <class F>
  static auto in_layer(std::size_t i, F&& f) {
    return detail::explained<NonFiniteError>(f, [&](const char* what) {
      raise<NonFiniteError>("TransformerLM", "layer ", i, ": ", what);
    });
  }

  auto forward_layer(std::size_t i, typename MemoryType::State& state, const V& x,
                     const LayerCall<MemoryType>& call) const {
    return in_layer(i, [&] {
      auto output = layers[i].forward(state, x, call);
      if (!Tape::active())
        detail::require_finite(output.hidden.value(), [] {
          raise<NonFiniteError>("TransformerLayer", "NaN or infinity came up");
        });
      return output;
    });
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

  LayerCall<MemoryType> make_call(const Tokens& tokens, Random* random) const {
    return {biases, encoding(layers.front().memory.reach() + tokens.dim(1)),
            random ? config_.dropout : 0, random};
  }

  Tensor<T, Backend> encoding(Index longest) const {
    const std::lock_guard lock(encodings_->mutex);
    if (encodings_->table.dim(0) < longest)
      encodings_->table = distance_encoding<T, Backend>(longest, config_.model_dim);
    return encodings_->table;
  }

  TransformerConfig config_;
  MemoryConfig memory_config_;
  std::shared_ptr<Encodings> encodings_ = std::make_shared<Encodings>();
};

}  // namespace infty
