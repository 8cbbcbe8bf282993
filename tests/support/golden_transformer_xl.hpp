// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <infty/memory/short_term_memory.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// Replays a case of a Transformer-XL: consecutive segments, the memory behind each, and the
/// gradients of each segment's mean loss.
template <class T, class B>
class TransformerXlReplay {
 public:
  using Model = TransformerLM<T, GaussianDensity, B>;

  explicit TransformerXlReplay(GoldenCase& file)
      : file_(file), model_(config_of(file)), parameters_(name_parameters()) {
    for (auto& part : parameters_) {
      const auto whole = file_.read("param." + part.name);
      if (whole.shape.rank() < 1 || whole.shape[0] % part.of != 0)
        file_.fail("param.", part.name, " is ", whole.shape);
      const Index rows = whole.shape[0] / part.of, size = whole.shape.size() / part.of;
      const auto begin = whole.values.begin() + part.at * size;
      set_parameter<T, B>(file_, "param." + part.name,
                          {whole.shape.with(0, rows), {begin, begin + size}}, part.variable);
    }
  }

  Comparison run() {
    Index segments = 0;
    while (!file_.names("segment" + std::to_string(segments) + '.').empty()) ++segments;
    if (file_.has_key("segments")) segments = std::max(segments, file_.count("segments"));
    const Shape& first = file_.shape("segment0.input");
    if (first.rank() != 2) file_.fail("segment0.input is ", first, ": it must be [segment, batch]");
    auto state = model_.make_state(first[1]);
    // The program keeps the last layer's output too, which no layer ever reads.
    const ShortTermMemory<T, B> last(model_.config().model_dim, model_.config().short_term);
    auto last_state = last.make_state(first[1]);
    for (Index s = 0; s < segments; ++s) {
      const std::string prefix = "segment" + std::to_string(s) + '.';
      zero_grad(model_);
      Tape tape;
      const auto output = model_.forward(state, tokens(prefix + "input"));
      last.write(last_state, output.hidden.value());
      for (std::size_t i = 0; i < state.layers.size(); ++i)
        see_memory(prefix, i, state.layers[i].short_term);
      see_memory(prefix, state.layers.size(), last_state);
      if (!file_.has(prefix + "nll")) file_.fail("is not whole: ", prefix, "nll is missing");
      const auto targets = tokens(prefix + "target");
      const auto nll = token_losses(model_.logits(output.hidden), targets);
      see(prefix + "nll", record_of(nll.value()).swapped(0));
      if (file_.names(prefix + "grad.").empty()) continue;
      tape.backward(mean(nll));
      see_gradients(prefix + "grad.");
    }
    file_.require_all_seen();
    if (result_.compared == 0) file_.fail("records nothing to compare");
    return result_;
  }

 private:
  /// Part `at` of `of` equal bands of rows of a recorded parameter.
  struct Part {
    std::string name;
    Variable<T, B> variable;
    Index at = 0, of = 1;
  };

  static std::string layer_name(Index i) { return "layers." + std::to_string(i) + '.'; }

  static TransformerConfig config_of(const GoldenCase& file) {
    const auto matrix = [&](const std::string& name) {
      const Shape& shape = file.shape(name);
      if (shape.rank() != 2) file.fail(name, " is ", shape, ": it must be a matrix");
      return shape;
    };
    TransformerConfig config;
    const Shape table = matrix("param.word_emb.emb_layers.0.weight");
    const Shape bias = matrix("param.r_w_bias");
    config.vocabulary = table[0];
    config.model_dim = table[1];
    config.heads = bias[0];
    config.head_dim = bias[1];
    config.layers = 0;
    while (!file.names("param." + layer_name(config.layers)).empty()) ++config.layers;
    config.feed_forward = matrix("param.layers.0.pos_ff.CoreNet.0.weight")[0];
    file.require_agrees("vocabulary", config.vocabulary);
    file.require_agrees("model_dim", config.model_dim);
    file.require_agrees("heads", config.heads);
    file.require_agrees("head_dim", config.head_dim);
    file.require_agrees("layers", config.layers);
    file.require_agrees("feed_forward", config.feed_forward);
    file.require_agrees("batch", matrix("segment0.input")[1]);
    // More than all that is ever read need not be kept, whatever the file asks for.
    Index tokens = 0;
    for (const std::string& name : file.names("segment"))
      if (name.ends_with(".input")) tokens += matrix(name)[0];
    config.short_term = std::min(file.count("memory"), tokens);
    config.long_term.reset();
    config.pre_norm = file.flag("pre_norm", false);
    config.tie_embedding = !file.has("param.crit.out_layers.0.weight");
    return config;
  }

  std::vector<Part> name_parameters() {
    std::vector<Part> parts{{"r_w_bias", model_.content_bias},
                            {"r_r_bias", model_.position_bias},
                            {"word_emb.emb_layers.0.weight", model_.embedding.weight},
                            {"crit.out_layers.0.bias", model_.output_bias}};
    if (!model_.config().tie_embedding)
      parts.push_back({"crit.out_layers.0.weight", model_.output_weight});
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      auto& layer = model_.layers[i];
      const std::string name = layer_name(static_cast<Index>(i));
      const std::string attention = name + "dec_attn.", forward = name + "pos_ff.";
      parts.push_back({attention + "qkv_net.weight", layer.attention.query.weight, 0, 3});
      parts.push_back({attention + "qkv_net.weight", layer.attention.key.weight, 1, 3});
      parts.push_back({attention + "qkv_net.weight", layer.attention.value.weight, 2, 3});
      parts.push_back({attention + "r_net.weight", layer.attention.position.weight});
      parts.push_back({attention + "o_net.weight", layer.attention.out.weight});
      parts.push_back({attention + "layer_norm.weight", layer.attention_norm.weight});
      parts.push_back({attention + "layer_norm.bias", layer.attention_norm.bias});
      parts.push_back({forward + "CoreNet.0.weight", layer.feed_forward.inner.weight});
      parts.push_back({forward + "CoreNet.0.bias", layer.feed_forward.inner.bias});
      parts.push_back({forward + "CoreNet.3.weight", layer.feed_forward.outer.weight});
      parts.push_back({forward + "CoreNet.3.bias", layer.feed_forward.outer.bias});
      parts.push_back({forward + "layer_norm.weight", layer.feed_forward_norm.weight});
      parts.push_back({forward + "layer_norm.bias", layer.feed_forward_norm.bias});
    }
    return parts;
  }

  /// [segment, batch] in the file, [batch, segment] here.
  Tensor<Index, B> tokens(const std::string& name) {
    const Shape& in = file_.shape(name);
    if (in.rank() != 2) file_.fail(name, " is ", in, ": it must be [segment, batch]");
    const auto by_place = file_.read_tokens(name);
    const Index length = in[0], batch = in[1];
    std::vector<Index> by_row;
    for (Index b = 0; b < batch; ++b)
      for (Index i = 0; i < length; ++i)
        by_row.push_back(by_place[static_cast<std::size_t>(i * batch + b)]);
    return Tensor<Index, B>::from(Shape{batch, length}, by_row);
  }

  void see(const std::string& name, const Recorded& ours) {
    if (file_.has(name)) result_.see(file_, name, ours, file_.read(name));
  }

  void see_memory(const std::string& prefix, std::size_t i, const ShortTermState<T, B>& state) {
    const Index capacity = state.recent.vectors.dim(1);
    // All rows have seen equally much.
    const Index held = state.recent.length.empty() ? 0 : state.recent.length.front();
    const auto recent = narrow(Variable<T, B>(state.recent.vectors), capacity - held, capacity);
    see(prefix + "memory." + std::to_string(i), record_of(recent.value()).swapped(0));
  }

  void see_gradients(const std::string& prefix) {
    for (std::size_t i = 0; i < parameters_.size();
         i += static_cast<std::size_t>(parameters_[i].of)) {
      Recorded whole;
      for (Index k = 0; k < parameters_[i].of; ++k) {
        const auto part = record_of(parameters_[i + static_cast<std::size_t>(k)].variable.grad());
        whole.values.insert(whole.values.end(), part.values.begin(), part.values.end());
        whole.shape = part.shape.with(0, part.shape[0] * parameters_[i].of);
      }
      see(prefix + parameters_[i].name, whole);
    }
  }

  GoldenCase& file_;
  Model model_;
  std::vector<Part> parameters_;
  Comparison result_;
};

/// Replays a case of the kind `transformer_xl*` in scalar T on backend B. @throws infty::IoError
template <class T, class B>
Comparison replay_transformer_xl(GoldenCase& file) {
  if (file.has_key("cutoffs") && !file.numbers("cutoffs").empty())
    file.fail("a Transformer-XL with adaptive softmax (cutoffs ", file.text("cutoffs"),
              "), a kind that cannot be replayed yet");
  if (!file.names("param.word_emb.emb_projs.").empty())
    file.fail("a Transformer-XL whose embedding is projected, a kind that cannot be replayed yet");
  return TransformerXlReplay<T, B>(file).run();
}

}  // namespace infty::tests
