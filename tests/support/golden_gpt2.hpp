// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/model/gpt2_files.hpp>

#include "support/golden_case.hpp"
#include "support/golden_tokens.hpp"

namespace infty::tests {

namespace gpt2_case {

/// The sizes of a case, by its tensors, held to what its metadata say.
inline Gpt2Config config_of(const GoldenCase& file) {
  const std::string all = "param.transformer.";
  if (file.text("activation", "gelu_new") != "gelu_new")
    file.fail("activation is ", file.text("activation"), ": it must be gelu_new");
  Gpt2Config config;
  config.vocabulary = tokens_case::dim(file, all + "wte.weight", 2, 0);
  config.model_dim = file.shape(all + "wte.weight")[1];
  config.places = tokens_case::dim(file, all + "wpe.weight", 2, 0);
  config.layers = tokens_case::count_of(file, all + "h.");
  if (config.layers == 0) file.fail("has no layers");
  config.heads = file.count("heads");
  config.feed_forward = tokens_case::dim(file, all + "h.0.mlp.c_fc.weight", 2, 1);
  config.norm_epsilon = file.number("layer_norm_epsilon", 1e-5);
  config.tie_embedding = !file.has("param.lm_head.weight");
  if (file.flag("tied", config.tie_embedding) != config.tie_embedding)
    file.fail("tied is ", file.text("tied"), ", by the tensors it is not");
  file.require_agrees("vocabulary", config.vocabulary);
  file.require_agrees("width", config.model_dim);
  file.require_agrees("positions", config.places);
  file.require_agrees("layers", config.layers);
  file.require_agrees("inner", config.feed_forward);
  return config;
}

/// A model's parameters by the names of the file.
template <class Mixer>
void name_parameters(const Gpt2<Mixer>& model,
                     RecordedParameters<typename Mixer::Scalar, typename Mixer::BackendType>& to) {
  const auto all = infty::detail::gpt2_parameters(model);
  auto at = all.begin();
  infty::detail::each_gpt2_tensor(model.config(), [&](const std::string& name, const Shape&) {
    for (const auto& part : at->parts) to.add("transformer." + name, part, at->turned);
    ++at;
    return true;
  });
  if (!model.config().tie_embedding) to.add("lm_head.weight", model.head.weight);
}

/// Columns [begin, end) of tokens [B, L].
template <class B>
Tensor<Index, B> columns(const std::vector<Index>& tokens, Index batch, Index begin, Index end) {
  const Index length = std::ssize(tokens) / batch;
  std::vector<Index> part;
  for (Index b = 0; b < batch; ++b)
    for (Index i = begin; i < end; ++i)
      part.push_back(tokens[static_cast<std::size_t>(b * length + i)]);
  return Tensor<Index, B>::from(Shape{batch, end - begin}, part);
}

}  // namespace gpt2_case

/// Replays a case of the kind gpt2: GPT-2 by Hugging Face's program, in memory and from files.
template <class T, class B>
class Gpt2Replay {
  using V = Variable<T, B>;
  using Model = Gpt2<CachedAttention<T, B>>;

 public:
  explicit Gpt2Replay(GoldenCase& file)
      : file_(file),
        model_(gpt2_case::config_of(file)),
        batch_(tokens_case::dim(file, "input", 2, 0)),
        length_(file.shape("input")[1]),
        tokens_(file.read_tokens("input")) {
    file.require_agrees("batch", batch_);
    file.require_agrees("length", length_);
    if (batch_ < 1 || length_ < 1)
      file.fail("input is ", file.shape("input"), ": there must be some of both");
    gpt2_case::name_parameters(model_, parameters_);
    parameters_.load(file);
  }

  Comparison run() {
    at_once();
    hidden();
    typed();
    generate();
    chunked();
    folders();
    // The same in float, which the tests compare.
    for (const std::string& name : file_.names("f32.")) file_.ignore(name);
    file_.require_all_seen();
    return result_;
  }

 private:
  void see(const std::string& name, const Tensor<T, B>& ours) {
    tokens_case::see(file_, result_, name, record_of(ours));
  }

  Tensor<Index, B> piece(Index begin, Index end) const {
    return gpt2_case::columns<B>(tokens_, batch_, begin, end);
  }

  void at_once() {
    Tape tape;
    auto state = model_.make_state(batch_);
    const V logits = model_.logits(model_.forward(state, piece(0, length_)));
    const V nll = token_losses(narrow(logits, 0, length_ - 1), piece(1, length_));
    const V loss = mean(nll);
    see("logits", logits.value());
    see("nll", nll.value());
    see("loss", loss.value());
    tape.backward(loss);
    parameters_.see_gradients(file_, result_);
  }

  void hidden() {
    const auto guard = no_grad();
    const auto& [places, blocks, norm] = model_.stack().layers;
    auto state = model_.make_state(batch_).body.inner;
    Pass<T, B> pass;
    auto& [at, stack, none] = state.layers;
    V x = places.forward(at, model_.embedding.forward(piece(0, length_), pass), pass);
    for (std::size_t i = 0; i < blocks.layers.size(); ++i) {
      see("hidden." + std::to_string(i), x.value());
      x = blocks.layers[i].forward(stack.layers[i], x, pass);
    }
    see("hidden." + std::to_string(blocks.layers.size()), norm.forward(x).value());
  }

  void typed() {
    if (!file_.has("typed.token_type")) return;
    const auto guard = no_grad();
    file_.require_shape("typed.token_type", Shape{batch_, length_});
    const auto types = file_.read_tokens("typed.token_type");
    Pass<T, B> pass{.types = gpt2_case::columns<B>(types, batch_, 0, length_)};
    auto state = model_.make_state(batch_);
    see("typed.logits", model_.logits(model_.forward(state, piece(0, length_), pass)).value());
  }

  void generate() {
    if (!file_.has("generate.prompt")) return;
    const auto guard = no_grad();
    const Index rows = tokens_case::dim(file_, "generate.prompt", 2, 0);
    if (rows != 1 || file_.shape("generate.prompt")[1] < 1)
      file_.fail("generate.prompt is ", file_.shape("generate.prompt"), ": it must be one row");
    auto tokens = file_.read_tokens("generate.prompt");
    const Index steps = file_.count("new_tokens"), classes = model_.config().vocabulary;
    file_.require_agrees("prompt", std::ssize(tokens));
    auto state = model_.make_state(1);
    std::vector<double> cached, full;
    auto next = gpt2_case::columns<B>(tokens, 1, 0, std::ssize(tokens));
    const auto last_of = [&](const V& hidden) {
      const Index n = hidden.dim(1);
      return record_of(model_.logits(narrow(hidden, n - 1, n)).value()).values;
    };
    for (Index step = 0; step < steps; ++step) {
      const auto own = last_of(model_.forward(state, next));
      if (step == 0) see_past(state, std::ssize(tokens));
      auto fresh = model_.make_state(1);
      const auto whole =
          last_of(model_.forward(fresh, gpt2_case::columns<B>(tokens, 1, 0, std::ssize(tokens))));
      cached.insert(cached.end(), own.begin(), own.end());
      full.insert(full.end(), whole.begin(), whole.end());
      tokens.push_back(std::max_element(own.begin(), own.end()) - own.begin());
      next = gpt2_case::columns<B>(tokens, 1, std::ssize(tokens) - 1, std::ssize(tokens));
    }
    tokens_case::see(file_, result_, "generate.logits_cached", {Shape{steps, classes}, cached});
    tokens_case::see(file_, result_, "generate.logits_full", {Shape{steps, classes}, full});
    if (!file_.has("generate.tokens")) return;
    const auto theirs = file_.read_tokens("generate.tokens");
    const auto recorded = [](const std::vector<Index>& ids) {
      return Recorded{Shape{1, std::ssize(ids)}, {ids.begin(), ids.end()}};
    };
    result_.see(file_, "generate.tokens", recorded(tokens), recorded(theirs));
  }

  /// Keys and values [B, K, H D], in the file [B, H, K, D].
  void see_past(const typename Model::State& state, Index length) {
    const auto& layers = std::get<1>(state.body.inner.layers).layers;
    const AttentionSizes sizes = model_.config().attention_sizes();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const auto see_heads = [&](const char* what, const V& x) {
        const Shape heads{1, length, sizes.heads, sizes.head_dim};
        if (x.size() != heads.size()) file_.fail("keys are ", x.shape(), ", expected ", heads);
        tokens_case::see(file_, result_, "generate.past.h." + std::to_string(i) + what,
                         Recorded{heads, record_of(x.value()).values}.swapped(1));
      };
      see_heads(".key", layers[i].mixer.keys);
      see_heads(".value", layers[i].mixer.values);
    }
  }

  void chunked() {
    const auto guard = no_grad();
    auto state = model_.make_state(batch_);
    const Index half = length_ / 2;
    const V first = model_.logits(model_.forward(state, piece(0, half)));
    see("chunked.logits",
        concat(first, model_.logits(model_.forward(state, piece(half, length_)))).value());
  }

  /// The same model as files, of those folders that are there.
  void folders() {
    if (!file_.has_key("folders")) return;
    const auto guard = no_grad();
    std::vector<std::string> names;
    infty::detail::JsonReader json(file_.text("folders"), "folders");
    json.array([&] { names.push_back(json.string()); });
    const auto recorded = file_.read("logits");
    for (const std::string& name : names) {
      const auto folder = file_.path().parent_path() / name;
      if (!std::filesystem::exists(folder)) continue;
      const auto model = load_gpt2<CachedAttention<T, B>>(folder);
      auto state = model.make_state(batch_);
      const V logits = model.logits(model.forward(state, piece(0, length_)));
      result_.see(file_, name + ".logits", record_of(logits.value()), recorded);
    }
  }

  GoldenCase& file_;
  Model model_;
  Index batch_, length_;
  std::vector<Index> tokens_;
  RecordedParameters<T, B> parameters_;
  Comparison result_;
};

/// Replays a case of GPT-2. @throws infty::IoError
template <class T, class B>
Comparison replay_gpt2(GoldenCase& file) {
  return Gpt2Replay<T, B>(file).run();
}

}  // namespace infty::tests
