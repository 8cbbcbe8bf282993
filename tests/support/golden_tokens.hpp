// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/model/block.hpp>
#include <infty/model/language_model.hpp>
#include <infty/model/layers.hpp>
#include <infty/model/memory_encoder.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/added_places.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/self_attention.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// The recorded parameters of a case and the variables that stand for them. A recorded tensor may
/// be several variables, the rows of one below the rows of another.
template <class T, class B>
class RecordedParameters {
 public:
  /// @param turned  the file has the matrix [in, out]
  void add(std::string name, const Variable<T, B>& variable, bool turned = false) {
    parts_.push_back({std::move(name), variable, turned});
  }

  void load(GoldenCase& file) {
    for (std::size_t i = 0; i < parts_.size();) {
      const std::string name = "param." + parts_[i].name;
      auto whole = file.read(name);
      if (parts_[i].turned) {
        if (whole.shape.rank() != 2) file.fail(name, " is ", whole.shape, ": it must be a matrix");
        whole = whole.swapped(0);
      }
      auto from = whole.values.begin();
      for (const std::size_t end = behind(i); i < end; ++i) {
        auto& to = parts_[i].variable;
        if (whole.values.end() - from < to.size() || whole.shape.rank() < 1 ||
            (to.shape().rank() > 1 && whole.shape[whole.shape.rank() - 1] != to.dim(-1)))
          file.fail(name, " is ", whole.shape, ", which does not fit the rest of the case");
        set_parameter<T, B>(file, name, {to.shape(), {from, from + to.size()}}, to);
        from += to.size();
      }
      if (from != whole.values.end())
        file.fail(name, " is ", whole.shape, ", which does not fit the rest of the case");
    }
  }

  void see_gradients(GoldenCase& file, Comparison& result) const {
    for (std::size_t i = 0; i < parts_.size();) {
      const std::string name = "grad." + parts_[i].name;
      const bool turned = parts_[i].turned;
      std::vector<double> all;
      Index rows = 0;
      Shape shape = parts_[i].variable.shape();
      for (const std::size_t end = behind(i); i < end; ++i) {
        const auto part = record_of(parts_[i].variable.grad());
        all.insert(all.end(), part.values.begin(), part.values.end());
        rows += part.shape[0];
      }
      Recorded ours{shape.with(0, rows), std::move(all)};
      if (file.has(name)) result.see(file, name, turned ? ours.swapped(0) : ours, file.read(name));
    }
  }

 private:
  struct Part {
    std::string name;
    Variable<T, B> variable;
    bool turned;
  };

  std::size_t behind(std::size_t i) const {
    std::size_t end = i;
    while (end < parts_.size() && parts_[end].name == parts_[i].name) ++end;
    return end;
  }

  std::vector<Part> parts_;
};

namespace tokens_case {

/// The gradient that arrived at a state, zeros where none did.
template <class T, class B>
Recorded gradient_of(const Variable<T, B>& x) {
  return record_of(x.has_grad() ? x.grad() : Tensor<T, B>::zeros(x.shape()));
}

inline void see(GoldenCase& file, Comparison& result, const std::string& name,
                const Recorded& ours) {
  if (file.has(name)) result.see(file, name, ours, file.read(name));
}

inline Index dim(const GoldenCase& file, const std::string& name, Index rank, Index i) {
  const Shape& shape = file.shape(name);
  if (shape.rank() != rank) file.fail(name, " is ", shape, ": it must have ", rank, " dimensions");
  return shape[i];
}

/// How many of the names prefix0, prefix1, ... stand in the file, with what is behind them.
inline Index count_of(const GoldenCase& file, const std::string& prefix) {
  Index n = 0;
  while (!file.names(prefix + std::to_string(n) + '.').empty()) ++n;
  return n;
}

/// Heads and their width, of `inner` numbers that all of them have.
inline AttentionSizes sizes_of(const GoldenCase& file, Index d, Index inner) {
  const Index heads = file.count("heads");
  if (heads < 1 || inner % heads != 0)
    file.fail("heads is ", heads, ", queries have ", inner, " dimensions");
  file.require_agrees("head_dim", inner / heads);
  file.require_agrees("model_dim", d);
  return {.model_dim = d, .heads = heads, .head_dim = inner / heads};
}

inline void require_norm(const GoldenCase& file) {
  if (file.number("norm_eps", 1e-5) != 1e-5)
    file.fail("norm_eps is ", file.text("norm_eps"), ": it must be 1e-5");
}

template <class T, class B>
void name_norm(RecordedParameters<T, B>& to, const std::string& name, LayerNorm<T, B>& norm) {
  to.add(name + ".weight", norm.weight);
  to.add(name + ".bias", norm.bias);
}

template <class T, class B>
void name_linear(RecordedParameters<T, B>& to, const std::string& name, Linear<T, B>& map,
                 bool turned = false) {
  to.add(name + ".weight", map.weight, turned);
  to.add(name + ".bias", map.bias);
}

/// Three maps whose rows stand one below the other.
template <class T, class B>
void name_maps(RecordedParameters<T, B>& to, const std::string& weight, const std::string& bias,
               MultiHeadAttention<T, B>& maps, bool turned = false) {
  for (auto* map : {&maps.query, &maps.key, &maps.value}) to.add(weight, map->weight, turned);
  for (auto* map : {&maps.query, &maps.key, &maps.value}) to.add(bias, map->bias);
}

}  // namespace tokens_case

/// Replays a case of the kinds memtransformer, memctrl and membottleneck: memory tokens around
/// encoders, and what comes out of every layer.
template <class Layer>
class MemoryEncoderReplay {
  using T = typename Layer::Scalar;
  using B = typename Layer::BackendType;
  using V = Variable<T, B>;
  static constexpr bool one_block = !requires(Layer layer) { layer.encoding; };

 public:
  explicit MemoryEncoderReplay(GoldenCase& file)
      : file_(file),
        model_({}, {.tokens = tokens_case::dim(file, "param.memory", 2, 0)},
               tokens_case::dim(file, "param.memory", 2, 1), Random(1)) {
    const Index d = model_.initial.weight.dim(1);
    const Index layers = tokens_case::count_of(file, "param.layers.");
    if (layers == 0) file.fail("has no layers");
    file.require_agrees("layers", layers);
    file.require_agrees("memory", model_.initial.weight.dim(0));
    if (file.text("activation", "relu") != "relu")
      file.fail("activation is ", file.text("activation"), ": it must be relu");
    const AttentionSizes sizes = tokens_case::sizes_of(file, d, d);
    parameters_.add("memory", model_.initial.weight);
    for (Index i = 0; i < layers; ++i) {
      const std::string name = "layers." + std::to_string(i) + '.';
      if constexpr (one_block) {
        const Index hidden = tokens_case::dim(file, "param." + name + "all.fc1.weight", 2, 0);
        model_.inner.layers.push_back({SelfAttention<T, B>({}, sizes), LayerNorm<T, B>(d),
                                       FeedForward<T, B>(d, hidden, Random(1)), LayerNorm<T, B>(d),
                                       false});
        auto& layer = model_.inner.layers.back();
        name_block(name + "all.", layer.mixer.maps, layer.mixer_norm, layer.feed, layer.feed_norm);
      } else {
        const bool control = file.text("kind") == "memctrl";
        const Index hidden = tokens_case::dim(file, "param." + name + "mem.fc1.weight", 2, 0);
        model_.inner.layers.push_back(
            Layer({control ? MemoryEncoding::control : MemoryEncoding::bottleneck, hidden}, sizes,
                  Random(1)));
        auto& layer = model_.inner.layers.back();
        for (auto* block : {&layer.memory, &layer.sequence})
          name_block(name + (block == &layer.memory ? "mem." : "seq."), block->attention,
                     block->attention_norm, block->feed, block->feed_norm);
      }
    }
    parameters_.load(file);
  }

  Comparison run() {
    V x(file_.read("input").tensor<T, B>(), true);
    const auto weight = file_.read("loss_weight"), memory_weight = file_.read("memory.loss_weight");
    Tape tape;
    V loss;
    auto below = model_;  // the first layers alone: what comes out of each of them
    below.inner.layers.clear();
    for (std::size_t i = 0; i < model_.inner.layers.size(); ++i) {
      below.inner.layers.push_back(model_.inner.layers[i]);
      const bool last = i + 1 == model_.inner.layers.size();
      auto state = below.make_state(x.dim(0));
      Pass<T, B> pass{.traced = true};
      const V y = last ? model_.forward(state, x, pass) : below.forward(state, x, pass);
      const V memory = first_shown(pass, "memory_tokens");
      const std::string prefix = "layer" + std::to_string(i) + '.';
      tokens_case::see(file_, result_, prefix + "memory", record_of(memory.value()));
      tokens_case::see(file_, result_, prefix + "output", record_of(y.value()));
      if (last)
        loss = sum(multiply(y, V(weight.template tensor<T, B>()))) +
               sum(multiply(memory, V(memory_weight.template tensor<T, B>())));
    }
    tape.backward(loss);
    tokens_case::see(file_, result_, "grad.input", record_of(x.grad()));
    parameters_.see_gradients(file_, result_);
    file_.require_all_seen();
    return result_;
  }

 private:
  void name_block(const std::string& name, MultiHeadAttention<T, B>& maps, LayerNorm<T, B>& first,
                  FeedForward<T, B>& feed, LayerNorm<T, B>& second) {
    tokens_case::require_norm(file_);
    tokens_case::name_maps(parameters_, name + "attention.in_proj_weight",
                           name + "attention.in_proj_bias", maps);
    tokens_case::name_linear(parameters_, name + "attention.out_proj", maps.out);
    tokens_case::name_norm(parameters_, name + "norm1", first);
    tokens_case::name_linear(parameters_, name + "fc1", feed.inner);
    tokens_case::name_linear(parameters_, name + "fc2", feed.outer);
    tokens_case::name_norm(parameters_, name + "norm2", second);
  }

  GoldenCase& file_;
  MemoryTokens<Layers<Layer>> model_;
  RecordedParameters<T, B> parameters_;
  Comparison result_;
};

/// Replays a case of the kind rmt_gpt2: GPT-2's blocks, positions and norm inside of recurrent
/// memory tokens, one loss over all segments.
template <class T, class B>
class RmtGpt2Replay {
  using V = Variable<T, B>;

  /// GPT-2's feed.
  struct Feed {
    Linear<T, B> inner, outer;
    template <class Visitor>
    void visit(Visitor&& see) {
      see("inner", inner);
      see("outer", outer);
    }
    V forward(const V& x) const { return outer.forward(gelu(inner.forward(x), Approximate::tanh)); }
  };
  using Gpt2Block = Block<CausalAttention<T, B>, Feed>;
  using Body = Layers<AddedPlaces<T, B>, Layers<Gpt2Block>, LayerNorm<T, B>>;

 public:
  explicit RmtGpt2Replay(GoldenCase& file)
      : file_(file),
        d_(tokens_case::dim(file, "param.memory", 2, 1)),
        table_(tokens_case::dim(file, "param.model.transformer.wte.weight", 2, 0), d_, Random(1)),
        model_(body(file, d_), {.tokens = tokens_case::dim(file, "param.memory", 2, 0)}, d_,
               Random(1)) {
    const std::string all = "model.transformer.";
    parameters_.add("memory", model_.initial.weight);
    parameters_.add(all + "wte.weight", table_.weight);
    auto& [places, blocks, norm] = model_.inner.layers;
    tokens_case::require_norm(file);
    parameters_.add(all + "wpe.weight", places.places.weight);
    tokens_case::name_norm(parameters_, all + "ln_f", norm);
    for (std::size_t i = 0; i < blocks.layers.size(); ++i) {
      auto& block = blocks.layers[i];
      const std::string name = all + "h." + std::to_string(i) + '.';
      tokens_case::name_norm(parameters_, name + "ln_1", block.mixer_norm);
      tokens_case::name_maps(parameters_, name + "attn.c_attn.weight", name + "attn.c_attn.bias",
                             block.mixer.maps, true);
      tokens_case::name_linear(parameters_, name + "attn.c_proj", block.mixer.maps.out, true);
      tokens_case::name_norm(parameters_, name + "ln_2", block.feed_norm);
      tokens_case::name_linear(parameters_, name + "mlp.c_fc", block.feed.inner, true);
      tokens_case::name_linear(parameters_, name + "mlp.c_proj", block.feed.outer, true);
    }
    parameters_.load(file);
  }

  Comparison run() {
    const Index batch = tokens_case::dim(file_, "input", 2, 0);
    const Index length = file_.shape("input")[1], segment = file_.count("segment");
    if (segment < 1 || length % segment != 0)
      file_.fail("segment is ", segment, ", there are ", length, " tokens");
    file_.require_agrees("segments", length / segment);
    const auto tokens = file_.read_tokens("input");
    const auto piece = [&](Index from, Index to) {
      std::vector<Index> part;
      for (Index b = 0; b < batch; ++b)
        for (Index i = from; i < to; ++i)
          part.push_back(tokens[static_cast<std::size_t>(b * length + i)]);
      return Tensor<Index, B>::from(Shape{batch, to - from}, part);
    };
    Tape tape;
    auto state = model_.make_state(batch);
    std::vector<V> memories;
    V logits;
    for (Index s = 0; s * segment < length; ++s) {
      const std::string prefix = "segment" + std::to_string(s) + '.';
      Pass<T, B> pass;
      const V y =
          model_.forward(state, table_.forward(piece(s * segment, (s + 1) * segment)), pass);
      const V own = linear(y, table_.weight);
      memories.push_back(state.tokens);
      tokens_case::see(file_, result_, prefix + "logits", record_of(own.value()));
      tokens_case::see(file_, result_, prefix + "memory", record_of(state.tokens.value()));
      logits = s == 0 ? own : concat(logits, own);
    }
    // The last word of a segment predicts the first of the next.
    const V loss = mean(token_losses(narrow(logits, 0, length - 1), piece(1, length)));
    tokens_case::see(file_, result_, "loss", record_of(loss.value()));
    tape.backward(loss);
    for (std::size_t s = 0; s < memories.size(); ++s)
      tokens_case::see(file_, result_, "segment" + std::to_string(s) + ".memory.grad",
                       tokens_case::gradient_of(memories[s]));
    parameters_.see_gradients(file_, result_);
    file_.require_all_seen();
    return result_;
  }

 private:
  static Body body(const GoldenCase& file, Index d) {
    const std::string all = "param.model.transformer.";
    if (file.text("activation", "gelu_new") != "gelu_new")
      file.fail("activation is ", file.text("activation"), ": it must be gelu_new");
    const Index layers = tokens_case::count_of(file, all + "h.");
    if (layers == 0) file.fail("has no layers");
    file.require_agrees("layers", layers);
    file.require_agrees("memory", file.shape("param.memory")[0]);
    const AttentionSizes sizes = tokens_case::sizes_of(file, d, d);
    Layers<Gpt2Block> blocks;
    for (Index i = 0; i < layers; ++i) {
      const Index hidden =
          tokens_case::dim(file, all + "h." + std::to_string(i) + ".mlp.c_fc.weight", 2, 1);
      blocks.layers.push_back({.mixer = CausalAttention<T, B>({}, sizes, Random(1)),
                               .mixer_norm = LayerNorm<T, B>(d),
                               .feed = {{d, hidden, Random(1)}, {hidden, d, Random(1)}},
                               .feed_norm = LayerNorm<T, B>(d)});
    }
    return Body(AddedPlaces<T, B>(tokens_case::dim(file, all + "wpe.weight", 2, 0), d, Random(1)),
                std::move(blocks), LayerNorm<T, B>(d));
  }

  GoldenCase& file_;
  Index d_;
  Embedding<T, B> table_;
  RecurrentTokens<Body> model_;
  RecordedParameters<T, B> parameters_;
  Comparison result_;
};

/// Replays a case of the kind rmt_xl: a Transformer-XL inside of memory tokens, recurrent ones or
/// the same in every segment, one loss over all segments.
template <class Body>
class RmtXlReplay {
  using T = typename Body::Scalar;
  using B = typename Body::BackendType;
  using V = Variable<T, B>;
  using Xl = TransformerLM<ShortTermMemory<T, B>>;
  static constexpr bool recurrent = requires(typename Body::State state) { state.segments; };

 public:
  explicit RmtXlReplay(GoldenCase& file)
      : file_(file),
        at_end_(file.flag("mem_at_end", true)),
        xl_(config_of(file), {.capacity = file.count("cache")}),
        body_(xl_.body, tokens_of(file), xl_.config().model_dim, Random(1)) {
    auto& layers = body_.inner.layers;
    tokens_case::require_norm(file);
    parameters_.add("mem_tokens", body_.initial.weight);
    parameters_.add("r_w_bias", layers[0].mixer.attention.content_bias);
    parameters_.add("r_r_bias", layers[0].mixer.attention.position_bias);
    parameters_.add("word_emb.emb_layers.0.weight", xl_.embedding.weights[0]);
    parameters_.add("crit.out_layers.0.bias", xl_.head.biases[0]);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      auto& maps = layers[i].mixer.attention;
      const std::string name = "layers." + std::to_string(i) + '.';
      for (auto* map : {&maps.query, &maps.key, &maps.value})
        parameters_.add(name + "dec_attn.qkv_net.weight", map->weight);
      parameters_.add(name + "dec_attn.r_net.weight", maps.position.weight);
      parameters_.add(name + "dec_attn.o_net.weight", maps.out.weight);
      tokens_case::name_norm(parameters_, name + "dec_attn.layer_norm", layers[i].mixer_norm);
      tokens_case::name_linear(parameters_, name + "pos_ff.CoreNet.0", layers[i].feed.inner);
      tokens_case::name_linear(parameters_, name + "pos_ff.CoreNet.3", layers[i].feed.outer);
      tokens_case::name_norm(parameters_, name + "pos_ff.layer_norm", layers[i].feed_norm);
    }
    parameters_.load(file);
  }

  Comparison run() {
    const Index segments = tokens_case::count_of(file_, "segment");
    file_.require_agrees("segments", segments);
    if (segments == 0) file_.fail("has no segments");
    const Index batch = tokens_case::dim(file_, "segment0.input", 2, 1);
    const Fifo<T, B> last(xl_.config().model_dim, xl_.memory_config().capacity);
    auto last_state = last.make_state(batch);
    auto state = body_.make_state(batch);
    Tape tape;
    std::vector<V> memories;
    V loss;
    for (Index s = 0; s < segments; ++s) {
      const std::string prefix = "segment" + std::to_string(s) + '.';
      Pass<T, B> pass{.traced = true};
      const V y = body_.forward(state, xl_.embedding.forward(tokens(prefix + "input"), pass), pass);
      const V front = first_shown(pass, "memory_tokens");
      V memory = at_end_ ? first_shown(pass, "memory_tokens_behind") : front;
      const V front_and_words = concat(front, y);
      last.write(last_state, (at_end_ ? concat(front_and_words, memory) : front_and_words).value());
      if constexpr (recurrent) memory = state.tokens;
      memories.push_back(memory);
      tokens_case::see(file_, result_, prefix + "memory", record_of(memory.value()).swapped(0));
      see_caches(prefix + "cache.", state.inner, last_state);
      const V nll = xl_.losses(y, tokens(prefix + "target"));
      tokens_case::see(file_, result_, prefix + "nll", record_of(nll.value()).swapped(0));
      const V own = scale(mean(nll), T(1) / static_cast<T>(segments));
      loss = s == 0 ? own : loss + own;
    }
    tokens_case::see(file_, result_, "loss", record_of(loss.value()));
    tape.backward(loss);
    for (std::size_t s = 0; s < memories.size(); ++s)
      tokens_case::see(file_, result_, "segment" + std::to_string(s) + ".memory.grad",
                       tokens_case::gradient_of(memories[s]).swapped(0));
    parameters_.see_gradients(file_, result_);
    file_.require_all_seen();
    return result_;
  }

 private:
  static TransformerConfig config_of(const GoldenCase& file) {
    if (file.text("activation", "relu") != "relu")
      file.fail("activation is ", file.text("activation"), ": it must be relu");
    const std::string first = "param.layers.0.";
    const Index d = tokens_case::dim(file, first + "dec_attn.r_net.weight", 2, 1);
    const AttentionSizes sizes =
        tokens_case::sizes_of(file, d, file.shape(first + "dec_attn.r_net.weight")[0]);
    const Index layers = tokens_case::count_of(file, "param.layers.");
    file.require_agrees("layers", layers);
    return {.vocabulary = tokens_case::dim(file, "param.word_emb.emb_layers.0.weight", 2, 0),
            .model_dim = d,
            .layers = layers,
            .heads = sizes.heads,
            .head_dim = sizes.head_dim,
            .feed_forward = tokens_case::dim(file, first + "pos_ff.CoreNet.0.weight", 2, 0),
            .pre_norm = file.flag("pre_norm", false)};
  }

  typename Body::Config tokens_of(const GoldenCase& file) const {
    typename Body::Config config;
    config.tokens = tokens_case::dim(file, "param.mem_tokens", 3, 0);
    file.require_agrees("memory", config.tokens);
    config.behind = at_end_;
    config.both_ways = true;
    config.read_past = file.flag("read_mem_from_cache", false);
    config.held = true;
    config.shifted = true;
    return config;
  }

  /// [segment, batch] in the file, [batch, segment] here.
  Tensor<Index, B> tokens(const std::string& name) {
    const Index length = tokens_case::dim(file_, name, 2, 0), batch = file_.shape(name)[1];
    const auto by_place = file_.read_tokens(name);
    std::vector<Index> by_row;
    for (Index b = 0; b < batch; ++b)
      for (Index i = 0; i < length; ++i)
        by_row.push_back(by_place[static_cast<std::size_t>(i * batch + b)]);
    return Tensor<Index, B>::from(Shape{batch, length}, by_row);
  }

  template <class State>
  void see_caches(const std::string& prefix, const State& state, const RowSequences<T, B>& last) {
    const auto see_one = [&](std::size_t layer, const RowSequences<T, B>& cache) {
      const Index most = cache.vectors.dim(1), held = cache.length.front();
      const auto recent = narrow(V(cache.vectors), most - held, most);
      tokens_case::see(file_, result_, prefix + std::to_string(layer),
                       record_of(recent.value()).swapped(0));
    };
    for (std::size_t i = 0; i < state.layers.size(); ++i) see_one(i, state.layers[i].mixer.recent);
    see_one(state.layers.size(), last);
  }

  GoldenCase& file_;
  bool at_end_;
  Xl xl_;
  Body body_;
  RecordedParameters<T, B> parameters_;
  Comparison result_;
};

/// Whether a case is of a kind that `replay_tokens` knows.
inline bool is_tokens_case(const GoldenCase& file) {
  const std::string kind = file.text("kind", "");
  return kind == "memtransformer" || kind == "memctrl" || kind == "membottleneck" ||
         kind == "rmt_gpt2" || kind == "rmt_xl";
}

/// Replays a case of a Memory Transformer or a Recurrent Memory Transformer. @throws infty::IoError
template <class T, class B>
Comparison replay_tokens(GoldenCase& file) {
  using Stack = Layers<Block<ShortTermMemory<T, B>>>;
  const std::string kind = file.text("kind", "");
  if (kind == "memtransformer") return MemoryEncoderReplay<Block<SelfAttention<T, B>>>(file).run();
  if (kind == "memctrl" || kind == "membottleneck")
    return MemoryEncoderReplay<MemoryEncoderLayer<T, B>>(file).run();
  if (kind == "rmt_gpt2") return RmtGpt2Replay<T, B>(file).run();
  if (kind != "rmt_xl") file.fail("kind is ", kind, ", which is not known here");
  if (file.flag("recurrent", true)) return RmtXlReplay<RecurrentTokens<Stack>>(file).run();
  return RmtXlReplay<MemoryTokens<Stack>>(file).run();
}

}  // namespace infty::tests
