// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <infty/autograd/linear.hpp>
#include <infty/autograd/parameters.hpp>
#include <infty/core/needs.hpp>
#include <infty/core/random.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/sliding_window.hpp>
#include <infty/model/block.hpp>
#include <infty/model/gpt2_config.hpp>
#include <infty/model/language_model.hpp>
#include <infty/model/layers.hpp>
#include <infty/nn/added_places.hpp>
#include <infty/nn/cached_attention.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/counted_places.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/gelu_feed.hpp>
#include <infty/nn/typed_embedding.hpp>

namespace infty {

/// A head that scores tokens by a table of vectors [vocabulary, d], without a bias: the embedding's
/// own or another one.
template <class T, class Backend = EigenBackend>
struct TableHead {
  using V = Variable<T, Backend>;

  V weight;  ///< [vocabulary, d]

  template <class Visitor>
  void visit(Visitor&& see) {
    see("output_weight", weight);  // the embedding's, where they are tied
  }

  /// Logits [..., vocabulary] of [..., d]. @throws infty::ShapeError
  V logits(const V& hidden) const { return linear(hidden, weight); }

  /// -log p of targets [B, L] -> [B, L]. @throws as `token_losses`
  V losses(const V& hidden, const Tensor<Index, Backend>& targets) const {
    return token_losses(logits(hidden), targets);
  }
};

namespace detail {

/// The attention of a mixer by GPT-2's maps: the mixer itself, or that which a memory stands
/// beside.
template <class Mixer>
auto& attention_maps(Mixer& mixer) {
  if constexpr (requires { mixer.maps; })
    return mixer.maps;
  else
    return attention_maps(mixer.attention);
}

/// Whether a mixer is attention by GPT-2's maps, with or without a memory beside it.
template <class Mixer>
inline constexpr bool has_attention_maps = [] {
  if constexpr (requires(Mixer mixer) { mixer.maps; })
    return requires(Mixer mixer) {
      requires std::same_as<decltype(mixer.maps), MultiHeadAttention<typename Mixer::Scalar,
                                                                     typename Mixer::BackendType>>;
    };
  else if constexpr (requires(Mixer mixer) { mixer.attention; })
    return has_attention_maps<decltype(Mixer::attention)>;
  else
    return false;
}();

/// Whether a mixer has GPT-2's parameters and no others.
template <class Mixer>
inline constexpr bool is_gpt2_attention =
    std::same_as<Mixer, CausalAttention<typename Mixer::Scalar, typename Mixer::BackendType>> ||
    std::same_as<Mixer, CachedAttention<typename Mixer::Scalar, typename Mixer::BackendType>>;

/// Has a long-term memory's maps begin as GPT-2's do, as in the authors' programs; the gate keeps
/// its own beginning. Other memories begin as they do.
template <class Mixer>
void begin_memory(Mixer& mixer, const Random& random) {
  if constexpr (requires { mixer.memory->density_weight; }) {
    if (!mixer.memory) return;
    std::uint64_t stream = 0;
    auto& m = *mixer.memory;
    for (auto* weight : {&m.key.weight, &m.value.weight, &m.density_weight, &m.out.weight}) {
      Random own = random.split(stream++);
      if (weight->size() > 0) fill_normal(weight->value(), 0, .02, own);
    }
  }
}

/// Whether attention beside a memory holds a chunk, read in pieces: see `WithMemory`.
template <class Mixer>
inline constexpr bool reads_chunks = requires(const Mixer& mixer) { mixer.attention.chunk(); };

/// The body of a `Gpt2`: places, blocks and a norm. Places begin anew with every segment, or with
/// every chunk that attention beside a memory holds.
template <class Mixer>
struct Gpt2Body {
  using T = typename Mixer::Scalar;
  using B = typename Mixer::BackendType;
  using Blocks = Layers<Block<Mixer, GeluFeed<T, B>>>;
  using Places = std::conditional_t<reads_chunks<Mixer>, CountedPlaces<T, B>, AddedPlaces<T, B>>;
  using Stack = Layers<Places, Blocks, LayerNorm<T, B>>;
  using type = Stack;
  static type make(Stack stack, const Gpt2Config&) { return stack; }
  static const Stack& stack(const type& body) { return body; }
};

/// With keys and values held, places go on where the last segment ended, in a window that slides.
template <class T_, class B_>
struct Gpt2Body<CachedAttention<T_, B_>> {
  using T = T_;
  using B = B_;
  using Blocks = Layers<Block<CachedAttention<T, B>, GeluFeed<T, B>>>;
  using Places = CountedPlaces<T, B>;
  using Stack = Layers<Places, Blocks, LayerNorm<T, B>>;
  using type = SlidingWindow<Stack>;
  static type make(Stack stack, const Gpt2Config& config) {
    return type(std::move(stack), {.longest = config.places, .kept = config.resolved_kept()},
                config.model_dim);
  }
  static const Stack& stack(const type& body) { return body.inner; }
};

}  // namespace detail

/// GPT-2 [Radford et al. 2019]: tokens and learned places, blocks with norms in front of attention
/// and feed, and a last norm, of which the head scores tokens; `load_gpt2` reads one from files.
///
/// - `Gpt2<CausalAttention<float>>` reads every segment for itself, its places from 0 on.
/// - `Gpt2<CachedAttention<float>>` holds keys and values, for generation, and goes on where the
///   row's last segment ended. Behind `places` tokens the window slides (`SlidingWindow`).
/// - `Gpt2<WithMemory<CausalAttention<float>, Memory>>` has a memory beside every attention, which
///   takes in every segment with the next one.
/// - `Gpt2<WithMemory<CachedAttention<float>, Memory>>` is the same model, for generation: it holds
///   the keys and values of a chunk, `capacity` tokens but `places` at most, which may be read in
///   pieces, and which the memory takes in when the next piece does not fit into it.
template <class Mixer>
class Gpt2
    : public LanguageModel<TypedEmbedding<typename Mixer::Scalar, typename Mixer::BackendType>,
                           typename detail::Gpt2Body<Mixer>::type,
                           TableHead<typename Mixer::Scalar, typename Mixer::BackendType>> {
  static_assert(detail::has_attention_maps<Mixer>,
                "Gpt2: the mixer has no `maps`, a MultiHeadAttention, nor an `attention` that has: "
                "it must be CausalAttention or CachedAttention, alone or beside a memory");
  using T = typename Mixer::Scalar;
  using B = typename Mixer::BackendType;
  using Parts = detail::Gpt2Body<Mixer>;
  using Base = LanguageModel<TypedEmbedding<T, B>, typename Parts::type, TableHead<T, B>>;

 public:
  using typename Base::PassType;
  using typename Base::State;
  using typename Base::Tokens;
  using typename Base::V;
  using MixerType = Mixer;
  using MemoryConfig = typename Mixer::Config;
  /// Places, blocks and the last norm.
  using Stack = typename Parts::Stack;

  /// Makes a model with fresh weights: normal with deviation .02, those of the maps back to d
  /// divided by the root of 2 layers [Radford et al. 2019, §2.3], biases 0; a memory's are its own.
  /// @throws infty::ValueError if one of the configurations is not valid
  explicit Gpt2(Gpt2Config config, MemoryConfig memory = {}, Random random = Random(0))
      : Gpt2(TypedEmbedding<T, B>((config.validate(), config.vocabulary), config.model_dim,
                                  random.split(0), .02),
             config, memory, random) {}

  /// The sizes as given.
  const Gpt2Config& config() const { return config_; }
  /// The mixer's constants as given.
  const MemoryConfig& memory_config() const { return memory_config_; }
  /// What another one like this is made from.
  std::tuple<Gpt2Config, MemoryConfig> configs() const { return {config_, memory_config_}; }

  /// Places, blocks and the last norm, `std::get<0>` to `<2>` of its `layers`; copies share
  /// weights.
  const Stack& stack() const { return Parts::stack(this->body); }

  /// Reads a segment, as `LanguageModel::forward`, with the configuration's dropout where the pass
  /// brings random numbers, and with the pass's token types. @throws as there
  V forward(State& state, const Tokens& tokens, PassType& pass) const {
    pass.dropout = config_.dropout;
    pass.attention_dropout = config_.attention_dropout;
    return Base::forward(state, tokens, pass);
  }

  /// Reads a segment in a pass of which nobody wants to know more than the answer.
  V forward(State& state, const Tokens& tokens) const { return Base::forward(state, tokens); }

 private:
  Gpt2(TypedEmbedding<T, B> table, const Gpt2Config& config, const MemoryConfig& memory,
       const Random& random)
      : Base(table, Parts::make(make_stack(config, memory, random), config),
             TableHead<T, B>{
                 config.tie_embedding
                     ? table.weight
                     : Embedding<T, B>(config.vocabulary, config.model_dim, random.split(1), .02)
                           .weight}),
        config_(config),
        memory_config_(memory) {}

  static Stack make_stack(const Gpt2Config& config, MemoryConfig memory, const Random& random) {
    if constexpr (std::same_as<Mixer, CachedAttention<T, B>>) memory.capacity = config.places;
    if constexpr (detail::reads_chunks<Mixer>)
      memory.attention.capacity = (std::min)(memory.attention.capacity, config.places);
    if constexpr (!requires(Mixer mixer) { mixer.memory.reset(); })
      require(config.memory_blocks.empty(), "Gpt2",
              "memory_blocks is not empty, and the mixer has no memory that it can be without");
    const AttentionSizes sizes = config.attention_sizes();
    const Index d = config.model_dim;
    typename Parts::Blocks blocks;
    for (Index i = 0; i < config.layers; ++i) {
      const Random own = random.split(static_cast<std::uint64_t>(3 + i));
      const auto make = [&](const Random& r) { return Mixer(memory, sizes, r); };
      GeluFeed<T, B> feed(d, config.resolved_feed_forward(), own.split(1));
      feed.approximate = Approximate::tanh;
      feed.drop_inner = false;
      blocks.layers.push_back(
          {.mixer = i == 0 ? make(own) : sibling_of(blocks.layers.front().mixer, own, make),
           .mixer_norm = LayerNorm<T, B>(d, config.norm_epsilon),
           .feed = std::move(feed),
           .feed_norm = LayerNorm<T, B>(d, config.norm_epsilon)});
      auto& block = blocks.layers.back();
      auto& maps = detail::attention_maps(block.mixer);
      detail::begin_memory(block.mixer, own.split(8));
      const double back = .02 / std::sqrt(2 * static_cast<double>(config.layers));
      std::uint64_t stream = 2;
      for (Linear<T, B>* map : {&maps.query, &maps.key, &maps.value, &block.feed.inner})
        draw(*map, own.split(stream++), .02);
      for (Linear<T, B>* map : {&maps.out, &block.feed.outer})
        draw(*map, own.split(stream++), back);
    }
    if constexpr (requires(Mixer mixer) { mixer.memory.reset(); })  // what they share is made
      for (Index i = 0; i < config.layers; ++i)
        if (!config.has_memory(i)) blocks.layers[static_cast<std::size_t>(i)].mixer.memory.reset();
    typename Parts::Places places(config.places, d, random.split(2));
    places.dropout = config.resolved_embedding_dropout();
    if constexpr (detail::reads_chunks<Mixer>)
      places.chunk = blocks.layers.front().mixer.attention.chunk();
    return Stack(std::move(places), std::move(blocks), LayerNorm<T, B>(d, config.norm_epsilon));
  }

  static void draw(Linear<T, B>& map, Random random, double deviation) {
    fill_normal(map.weight.value(), 0, deviation, random);
    if (map.bias.size() > 0) map.bias.value().fill(T(0));
  }

  Gpt2Config config_;
  MemoryConfig memory_config_;
};

namespace detail {

/// Refuses a model that has not the parameters that its configuration says.
/// @throws infty::ValueError for one that was moved from
template <class Mixer>
void require_parameters(const char* op, const Gpt2<Mixer>& model) {
  require(model.embedding.weight.size() > 0 &&
              std::ssize(std::get<1>(model.stack().layers).layers) == model.config().layers,
          op, "the model's parameters are not there: it was moved from");
}

}  // namespace detail

}  // namespace infty
