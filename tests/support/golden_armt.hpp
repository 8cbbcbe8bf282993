// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/associative_layer.hpp>
#include <infty/memory/tokens_behind.hpp>
#include <infty/model/block.hpp>
#include <infty/model/language_model.hpp>
#include <infty/model/layers.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/positioned_embedding.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

namespace armt {

/// A layer that changes nothing.
template <class T, class B>
struct Identity {
  using Scalar = T;
  using BackendType = B;

  template <class Visitor>
  void visit(Visitor&&) {}
  Variable<T, B> forward(const Variable<T, B>& x) const { return x; }
};

/// GPT-2's feed-forward network.
template <class T, class B>
struct GeluFeed {
  Linear<T, B> inner, outer;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("outer", outer);
  }
  Variable<T, B> forward(const Variable<T, B>& x) const {
    return outer.forward(gelu(inner.forward(x), Approximate::tanh));
  }
};

/// A head that scores by the embedding's own vectors.
template <class T, class B>
struct TiedHead {
  Variable<T, B> weight;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
  }
  Variable<T, B> logits(const Variable<T, B>& hidden) const { return linear(hidden, weight); }
  Variable<T, B> losses(const Variable<T, B>& hidden, const Tensor<Index, B>& targets) const {
    return token_losses(logits(hidden), targets);
  }
};

}  // namespace armt

/// What the replays of Associative Recurrent Memory Transformers share.
template <class T, class B>
class ArmtReplay {
 protected:
  using V = Variable<T, B>;

  explicit ArmtReplay(GoldenCase& file) : file_(file) {}

  static std::string segment(Index s) { return "segment" + std::to_string(s) + '.'; }

  /// The constants of the memory whose maps have names behind `prefix`.
  AssociativeConfig config(const std::string& prefix) const {
    const Shape &key = file_.shape(prefix + "W_mk.weight"),
                &strength = file_.shape(prefix + "W_mb.weight");
    if (key.rank() != 2 || strength.rank() != 2)
      file_.fail(prefix, "W_mk.weight is ", key, ", W_mb.weight ", strength);
    AssociativeConfig config{
        .heads = file_.text("kind") == "armt" && file_.has_key("heads") ? file_.count("heads") : 1,
        .key_dim = key[0],
        .nu = file_.count("nu"),
        .correction = file_.flag("correction", true),
        .unit_features = file_.flag("normalize_features", false),
        .denominator = file_.flag("denominator", true),
        .gating = file_.flag("gating", false),
        .bounded = false,
        .epsilon = file_.number("eps")};
    if (config.unit_features && file_.text("feature_eps", "none") != "none")
      config.feature_floor = file_.number("feature_eps");
    file_.require_agrees("memory_dim", config.key_dim);
    file_.require_agrees("model_dim", key[1]);
    return config;
  }

  /// A parameter takes the recorded numbers, and is compared in the end. `swapped`: stored [in,
  /// out].
  void name(const std::string& of, V& parameter, bool swapped = false) {
    const Recorded recorded = file_.read("param." + of);
    set_parameter(file_, "param." + of, swapped ? recorded.swapped(0) : recorded, parameter);
    parameters_.push_back({of, {parameter}, swapped});
  }

  void name_memory(const std::string& prefix, AssociativeMemory<T, B>& memory) {
    name(prefix + "W_mq.weight", memory.query.weight);
    name(prefix + "W_mk.weight", memory.key.weight);
    name(prefix + "W_mv.weight", memory.value.weight);
    name(prefix + "W_mb.weight", memory.strength.weight);
    name(prefix + "W_mb.bias", memory.strength.bias);
  }

  /// Queries, keys and values in one parameter, [in, 3 out] or [3 out].
  void name_bands(const std::string& of, std::vector<V> bands, bool swapped) {
    const std::string full = "param." + of;
    Recorded whole = file_.read(full);
    if (swapped && whole.shape.rank() != 2) file_.fail(full, " is ", whole.shape);
    if (swapped) whole = whole.swapped(0);
    const Index rows = bands.front().dim(0), count = static_cast<Index>(bands.size());
    if (!(whole.shape == bands.front().shape().with(0, count * rows)))
      file_.fail(full, " is ", file_.shape(full), ", which does not fit the rest of the case");
    const Index size = bands.front().size();
    auto begin = whole.values.begin();
    for (V& band : bands) {
      set_parameter<T, B>(file_, full, {band.shape(), {begin, begin + size}}, band);
      begin += size;
    }
    parameters_.push_back({of, std::move(bands), swapped});
  }

  /// Compares the state of a memory, whose gradient is compared in the end.
  void see_state(const std::string& memory, const std::string& norm,
                 const AssociativeState<T, B>& state) {
    see(memory, record_of(state.memory.value()));
    watched_.emplace_back(memory + ".grad", state.memory);
    if (state.mass.size() == 0) return;
    see(norm, record_of(state.mass.value()));
    watched_.emplace_back(norm + ".grad", state.mass);
  }

  /// Compares the loss and all gradients.
  Comparison finish(Tape& tape, const V& loss) {
    see("loss", record_of(loss.value()));
    tape.backward(loss);
    for (const auto& [name, x] : watched_) see(name, record_of(x.grad()));
    for (const Part& part : parameters_) {
      Recorded whole{part.bands.front().shape().with(0, 0), {}};
      for (const V& band : part.bands) {
        const Recorded grad = record_of(band.grad());
        whole.values.insert(whole.values.end(), grad.values.begin(), grad.values.end());
        whole.shape = whole.shape.with(0, whole.shape[0] + grad.shape[0]);
      }
      see("grad." + part.name, part.swapped ? whole.swapped(0) : whole);
    }
    file_.require_all_seen();
    return result_;
  }

  void see(const std::string& name, const Recorded& ours) {
    if (file_.has(name)) result_.see(file_, name, ours, file_.read(name));
  }

  GoldenCase& file_;
  std::vector<std::pair<std::string, V>> watched_;
  Comparison result_;

 private:
  struct Part {
    std::string name;
    std::vector<V> bands;
    bool swapped;
  };
  std::vector<Part> parameters_;
};

/// Replays a case of the kind `armt`: a memory around the identity, the memory tokens in the input.
template <class T, class B>
class ArmtMemoryReplay : ArmtReplay<T, B> {
  using Base = ArmtReplay<T, B>;
  using typename Base::V;

 public:
  explicit ArmtMemoryReplay(GoldenCase& file)
      : Base(file),
        layer_(armt::Identity<T, B>{}, this->config("param."), file.shape("param.W_mv.weight")[0],
               Random(0)) {
    this->name_memory("", layer_.memory);
  }

  Comparison run() {
    GoldenCase& file = this->file_;
    Pass<T, B> pass{.behind = file.count("memory")};
    auto state = layer_.make_state(file.shape("segment0.input")[0]);
    Tape tape;
    V loss(Tensor<T, B>::zeros(Shape{}));
    for (Index s = 0; s < file.count("segments"); ++s) {
      const std::string name = this->segment(s);
      const V x(file.read(name + "input").template tensor<T, B>(), true);
      const V y = layer_.forward(state, x, pass);
      this->see(name + "output", record_of(y.value()));
      this->watched_.emplace_back(name + "grad.input", x);
      this->see_state(name + "memory", name + "memory.norm", state.memory);
      loss = loss + weighed(y, name + "loss_weight");
    }
    loss = loss + weighed(state.memory.memory, "memory.loss_weight");
    if (layer_.config().denominator)
      loss = loss + weighed(state.memory.mass, "memory.norm.loss_weight");
    return this->finish(tape, loss);
  }

 private:
  V weighed(const V& x, const std::string& name) {
    const Recorded weight = this->file_.read(name);
    if (weight.shape.size() != x.size())
      this->file_.fail(name, " is ", weight.shape, ", not ", x.shape());
    return sum(reshape(x, weight.shape) * V(weight.template tensor<T, B>()));
  }

  AssociativeLayer<armt::Identity<T, B>> layer_;
};

/// Replays a case of the kind `armt_gpt2`: GPT-2 with a memory in each layer.
template <class T, class B>
class ArmtGpt2Replay : ArmtReplay<T, B> {
  using Base = ArmtReplay<T, B>;
  using typename Base::V;
  using Inner = Block<CausalAttention<T, B>, armt::GeluFeed<T, B>>;
  using Stack = Layers<AssociativeLayer<Inner>>;
  using Body = Layers<TokensBehind<Stack>, LayerNorm<T, B>>;
  using Embedding = PositionedEmbedding<T, B>;
  using Model = LanguageModel<Embedding, Body, armt::TiedHead<T, B>>;

 public:
  explicit ArmtGpt2Replay(GoldenCase& file) : Base(file), model_(make()) { name_all(); }

  Comparison run() {
    GoldenCase& file = this->file_;
    const Shape shape = file.shape("input");
    if (shape.rank() != 2) file.fail("input is ", shape, ": it must be [batch, length]");
    const Index batch = shape[0], length = shape[1], step = file.count("segment");
    const std::vector<Index> ids = file.read_tokens("input");
    const auto columns = [&](Index begin, Index end) {
      std::vector<Index> out;
      for (Index b = 0; b < batch; ++b)
        for (Index i = begin; i < end; ++i)
          out.push_back(ids[static_cast<std::size_t>(b * length + i)]);
      return Tensor<Index, B>::from(Shape{batch, end - begin}, out);
    };
    auto state = model_.make_state(batch);
    Tape tape;
    V logits;
    Index s = 0;
    for (Index begin = 0; begin < length; begin += step, ++s) {
      const V here =
          model_.logits(model_.forward(state, columns(begin, std::min(length, begin + step))));
      this->see(this->segment(s) + "logits", record_of(here.value()));
      auto& layers = std::get<0>(state.body.layers).inner.layers;
      for (std::size_t l = 0; l < layers.size(); ++l)
        this->see_state(this->segment(s) + "memory." + std::to_string(l),
                        this->segment(s) + "memory.norm." + std::to_string(l), layers[l].memory);
      logits = begin == 0 ? here : concat(logits, here);
    }
    file.require_agrees("segments", s);
    return this->finish(tape,
                        mean(token_losses(narrow(logits, 0, length - 1), columns(1, length))));
  }

 private:
  static std::string layer_name(Index l) {
    return "model.transformer.h." + std::to_string(l) + '.';
  }

  Model make() const {
    const GoldenCase& file = this->file_;
    const Shape &words = file.shape("param.model.transformer.wte.weight"),
                &places = file.shape("param.model.transformer.wpe.weight"),
                &tokens = file.shape("param.memory");
    if (words.rank() != 2 || places.rank() != 2 || tokens.rank() != 2)
      file.fail("embeddings are ", words, ", ", places, " and ", tokens);
    if (file.number("norm_eps", 1e-5) != 1e-5)
      file.fail("norm_eps is ", file.text("norm_eps"), ", which cannot be chosen here");
    if (file.text("activation", "gelu_new") != "gelu_new")
      file.fail("activation is ", file.text("activation"));
    const Index d = words[1], heads = file.count("heads");
    file.require_agrees("model_dim", d);
    file.require_agrees("vocabulary", words[0]);
    file.require_agrees("memory", tokens[0]);
    if (heads < 1 || d % heads != 0) file.fail("heads are ", heads, ", d is ", d);
    const AttentionSizes sizes{.model_dim = d, .heads = heads, .head_dim = d / heads};
    const Random random(0);
    Stack stack;
    Index l = 0;
    for (; !file.names("param." + layer_name(l)).empty(); ++l) {
      const std::string name = "param." + layer_name(l);
      const Index hidden = file.shape(name + "layer.mlp.c_fc.bias")[0];
      Inner block{.mixer = CausalAttention<T, B>({}, sizes, random),
                  .mixer_norm = LayerNorm<T, B>(d),
                  .feed = {Linear<T, B>(d, hidden, random), Linear<T, B>(hidden, d, random)},
                  .feed_norm = LayerNorm<T, B>(d)};
      stack.layers.emplace_back(std::move(block), this->config(name), d, random);
    }
    file.require_agrees("layers", l);
    const Embedding embedding(words[0], places[0], d, random);
    TokensBehind<Stack> body(std::move(stack), tokens[0], d, random);
    body.places = embedding.places.weight;
    body.last_places = file.flag("wrap_pos", true);
    return Model(embedding, Body(std::move(body), LayerNorm<T, B>(d)),
                 armt::TiedHead<T, B>{embedding.tokens.weight});
  }

  void name_all() {
    this->name("model.transformer.wte.weight", model_.embedding.tokens.weight);
    this->name("model.transformer.wpe.weight", model_.embedding.places.weight);
    auto& body = std::get<0>(model_.body.layers);
    this->name("memory", body.tokens.weight);
    auto& norm = std::get<1>(model_.body.layers);
    this->name("model.transformer.ln_f.weight", norm.weight);
    this->name("model.transformer.ln_f.bias", norm.bias);
    for (std::size_t l = 0; l < body.inner.layers.size(); ++l) {
      auto& layer = body.inner.layers[l];
      const std::string prefix = layer_name(static_cast<Index>(l)), name = prefix + "layer.";
      this->name_memory(prefix, layer.memory);
      auto& [mixer, mixer_norm, feed, feed_norm, front] = layer.inner;
      this->name(name + "ln_1.weight", mixer_norm.weight);
      this->name(name + "ln_1.bias", mixer_norm.bias);
      this->name(name + "ln_2.weight", feed_norm.weight);
      this->name(name + "ln_2.bias", feed_norm.bias);
      auto& maps = mixer.maps;
      this->name_bands(name + "attn.c_attn.weight",
                       {maps.query.weight, maps.key.weight, maps.value.weight}, true);
      this->name_bands(name + "attn.c_attn.bias", {maps.query.bias, maps.key.bias, maps.value.bias},
                       false);
      this->name(name + "attn.c_proj.weight", maps.out.weight, true);
      this->name(name + "attn.c_proj.bias", maps.out.bias);
      this->name(name + "mlp.c_fc.weight", feed.inner.weight, true);
      this->name(name + "mlp.c_fc.bias", feed.inner.bias);
      this->name(name + "mlp.c_proj.weight", feed.outer.weight, true);
      this->name(name + "mlp.c_proj.bias", feed.outer.bias);
    }
  }

  Model model_;
};

/// Replays a case of the kind `armt` in scalar T on backend B. @throws infty::IoError
template <class T, class B>
Comparison replay_armt(GoldenCase& file) {
  return ArmtMemoryReplay<T, B>(file).run();
}

/// Replays a case of the kind `armt_gpt2` in scalar T on backend B. @throws infty::IoError
template <class T, class B>
Comparison replay_armt_gpt2(GoldenCase& file) {
  return ArmtGpt2Replay<T, B>(file).run();
}

}  // namespace infty::tests
