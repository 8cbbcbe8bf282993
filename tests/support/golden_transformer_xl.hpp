// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/memory/lamemo.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// Replays a case of a Transformer-XL, or of a LaMemo, which is one with another mixer:
/// consecutive segments, the memory behind each, and the gradients of each segment's mean loss.
template <class Mixer>
class TransformerXlReplay {
  using T = typename Mixer::Scalar;
  using B = typename Mixer::BackendType;

 public:
  using Model = TransformerLM<Mixer>;

  explicit TransformerXlReplay(GoldenCase& file)
      : file_(file), model_(config_of(file), memory_of(file)), parameters_(name_parameters()) {
    for (std::size_t i = 0; i < parameters_.size();) {
      const std::string name = "param." + parameters_[i].name;
      const auto whole = file_.read(name);
      Index row = 0;
      for (const std::size_t end = behind(i); i < end; ++i) {
        const Index rows = parameters_[i].variable.dim(0);
        if (whole.shape.rank() < 1 || row + rows > whole.shape[0])
          file_.fail(name, " is ", whole.shape, ", which does not fit the rest of the case");
        const Index size = whole.shape.size() / whole.shape[0];
        const auto begin = whole.values.begin() + row * size;
        set_parameter<T, B>(file_, name, {whole.shape.with(0, rows), {begin, begin + rows * size}},
                            parameters_[i].variable);
        row += rows;
      }
      if (row != whole.shape[0])
        file_.fail(name, " is ", whole.shape, ", which does not fit the rest of the case");
    }
  }

  Comparison run() {
    Index segments = 0;
    while (!file_.names("segment" + std::to_string(segments) + '.').empty()) ++segments;
    if (file_.has_key("segments")) segments = std::max(segments, file_.count("segments"));
    const Shape& first = file_.shape("segment0.input");
    if (first.rank() != 2) file_.fail("segment0.input is ", first, ": it must be [segment, batch]");
    auto state = model_.make_state(first[1]);
    const Fifo<T, B> last(model_.config().model_dim, model_.memory_config().capacity);
    auto last_state = last.make_state(first[1]);
    for (Index s = 0; s < segments; ++s) {
      const std::string prefix = "segment" + std::to_string(s) + '.';
      zero_grad(model_);
      Tape tape;
      const auto hidden = model_.forward(state, tokens(prefix + "input"));
      last.write(last_state, hidden.value());
      see_memories(prefix + "memory.", state.body, last_state);
      if (!file_.has(prefix + "nll")) file_.fail("is not whole: ", prefix, "nll is missing");
      const auto targets = tokens(prefix + "target");
      const auto nll = model_.losses(hidden, targets);
      see(prefix + "nll", in_recorded_order(record_of(nll.value()).swapped(0),
                                            file_.read_tokens(prefix + "target")));
      if (file_.names(prefix + "grad.").empty()) continue;
      tape.backward(mean(nll));
      see_gradients(prefix + "grad.");
    }
    file_.require_all_seen();
    if (result_.compared == 0) file_.fail("records nothing to compare");
    return result_;
  }

 private:
  static constexpr bool looks_ahead = std::is_same_v<Mixer, LaMemo<T, B>>;

  /// A parameter as recorded, or a band of its rows: bands stand one behind the other.
  struct Part {
    std::string name;
    Variable<T, B> variable;
  };

  /// Behind the last band of the recorded parameter whose first is part i.
  std::size_t behind(std::size_t i) const {
    std::size_t end = i;
    while (end < parameters_.size() && parameters_[end].name == parameters_[i].name) ++end;
    return end;
  }

  auto& stack() {
    if constexpr (looks_ahead)
      return model_.body.inner;
    else
      return model_.body;
  }

  static std::string layer_name(Index i) { return "layers." + std::to_string(i) + '.'; }

  static TransformerConfig config_of(const GoldenCase& file) {
    const auto matrix = [&](const std::string& name) {
      const Shape& shape = file.shape(name);
      if (shape.rank() != 2) file.fail(name, " is ", shape, ": it must be a matrix");
      return shape;
    };
    TransformerConfig config;
    const Shape bias = matrix("param.r_w_bias");
    config.vocabulary = 0;
    for (const std::string& name : file.names("param.word_emb.emb_layers."))
      config.vocabulary += matrix(name)[0];
    config.embedding_dim = matrix("param.word_emb.emb_layers.0.weight")[1];
    config.model_dim = matrix("param.layers.0.pos_ff.CoreNet.0.weight")[1];
    if (file.has_key("cutoffs"))
      for (const double cutoff : file.numbers("cutoffs")) {
        if (!(cutoff >= 1 && cutoff < static_cast<double>(config.vocabulary)))
          file.fail("cutoffs are ", file.text("cutoffs"), " of ", config.vocabulary, " tokens");
        config.cutoffs.push_back(static_cast<Index>(cutoff));
      }
    if (file.has_key("div_val")) config.div_value = file.count("div_val");
    config.tie_projections = !file.has("param.crit.out_projs.1");
    config.heads = bias[0];
    config.head_dim = bias[1];
    config.layers = 0;
    while (!file.names("param." + layer_name(config.layers)).empty()) ++config.layers;
    config.feed_forward = matrix("param.layers.0.pos_ff.CoreNet.0.weight")[0];
    file.require_agrees("vocabulary", config.vocabulary);
    file.require_agrees("model_dim", config.model_dim);
    file.require_agrees("embedding_dim", config.embedding_dim);
    file.require_agrees("heads", config.heads);
    file.require_agrees("head_dim", config.head_dim);
    file.require_agrees("layers", config.layers);
    file.require_agrees("feed_forward", config.feed_forward);
    file.require_agrees("batch", matrix("segment0.input")[1]);
    config.pre_norm = file.flag("pre_norm", false);
    config.tie_embedding = !file.has("param.crit.out_layers.0.weight");
    return config;
  }

  static typename Mixer::Config memory_of(const GoldenCase& file) {
    // More than all that is ever read need not be kept, whatever the file asks for.
    Index tokens = 0;
    for (const std::string& name : file.names("segment"))
      if (name.ends_with(".input")) tokens += file.shape(name)[0];
    return {.capacity = std::min(file.count("memory"), tokens)};
  }

  std::vector<Part> name_parameters() {
    auto& layers = stack().layers;
    std::vector<Part> parts{{"r_w_bias", layers[0].mixer.attention.content_bias},
                            {"r_r_bias", layers[0].mixer.attention.position_bias}};
    if constexpr (looks_ahead) parts.push_back({"r_r_bias_future", layers[0].mixer.future_bias});
    name_vocabulary(parts);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      auto& layer = layers[i];
      auto& maps = layer.mixer.attention;
      const std::string name = layer_name(static_cast<Index>(i));
      const std::string attention = name + "dec_attn.", forward = name + "pos_ff.";
      if (looks_ahead) {
        parts.push_back({attention + "q_net.weight", maps.query.weight});
        parts.push_back({attention + "kv_net.weight", maps.key.weight});
        parts.push_back({attention + "kv_net.weight", maps.value.weight});
      } else {
        parts.push_back({attention + "qkv_net.weight", maps.query.weight});
        parts.push_back({attention + "qkv_net.weight", maps.key.weight});
        parts.push_back({attention + "qkv_net.weight", maps.value.weight});
      }
      parts.push_back({attention + "r_net.weight", maps.position.weight});
      parts.push_back({attention + "o_net.weight", maps.out.weight});
      parts.push_back({attention + "layer_norm.weight", layer.mixer_norm.weight});
      parts.push_back({attention + "layer_norm.bias", layer.mixer_norm.bias});
      parts.push_back({forward + "CoreNet.0.weight", layer.feed.inner.weight});
      parts.push_back({forward + "CoreNet.0.bias", layer.feed.inner.bias});
      parts.push_back({forward + "CoreNet.3.weight", layer.feed.outer.weight});
      parts.push_back({forward + "CoreNet.3.bias", layer.feed.outer.bias});
      parts.push_back({forward + "layer_norm.weight", layer.feed_norm.weight});
      parts.push_back({forward + "layer_norm.bias", layer.feed_norm.bias});
    }
    return parts;
  }

  /// The program has one table for all clusters if they are equally wide.
  void name_vocabulary(std::vector<Part>& parts) {
    const TransformerConfig& config = model_.config();
    const auto name_each = [&](const std::string& before, std::vector<Variable<T, B>>& all,
                               const std::string& after, std::size_t own, bool one) {
      for (std::size_t i = 0; i < own && i < all.size(); ++i)
        parts.push_back({before + std::to_string(one ? 0 : i) + after, all[i]});
    };
    const std::size_t all = config.cutoffs.size() + 1;
    const bool one = config.div_value == 1;
    auto& embedding = model_.embedding;
    auto& softmax = model_.head;
    name_each("word_emb.emb_layers.", embedding.weights, ".weight", all, one);
    name_each("word_emb.emb_projs.", embedding.projections, "", all, false);
    name_each("crit.out_layers.", softmax.weights, ".weight", config.tie_embedding ? 0 : all, one);
    name_each("crit.out_layers.", softmax.biases, ".bias", all, one);
    name_each("crit.out_projs.", softmax.projections, "", config.tie_projections ? 1 : all, false);
    if (config.cutoffs.empty()) return;
    parts.push_back({"crit.cluster_weight", softmax.cluster_weight});
    parts.push_back({"crit.cluster_bias", softmax.cluster_bias});
  }

  /// Losses [segment, batch] as the program returns them: with clusters it puts those of the first
  /// cluster's targets in front, then those of the second's, and so on.
  Recorded in_recorded_order(Recorded losses, const std::vector<Index>& targets) const {
    if (model_.config().cutoffs.empty()) return losses;
    const auto bounds = model_.config().adaptive().bounds();
    std::vector<double> sorted;
    for (Index cluster = 0; cluster < bounds.clusters; ++cluster)
      for (std::size_t i = 0; i < targets.size(); ++i)
        if (bounds.cluster_of(targets[i]) == cluster) sorted.push_back(losses.values[i]);
    losses.values = std::move(sorted);
    return losses;
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

  /// @param last  the last layer's outputs, which a Transformer-XL keeps too, though none reads
  /// them
  template <class State>
  void see_memories(const std::string& prefix, const State& state, const RowSequences<T, B>& last) {
    Index next = 0;
    const auto see_one = [&](const Tensor<T, B>& vectors, const RowCounts& length) {
      const Index capacity = vectors.dim(1);
      // All rows have seen equally much.
      const Index held = length.empty() ? 0 : length.front();
      const auto recent = narrow(Variable<T, B>(vectors), capacity - held, capacity);
      see(prefix + std::to_string(next++), record_of(recent.value()).swapped(0));
    };
    if constexpr (looks_ahead) {
      see_one(state.input.vectors, state.input.length);
      for (const auto& layer : state.inner.layers) {
        see_one(layer.mixer.context, layer.mixer.held);
        see_one(layer.mixer.log_sum, layer.mixer.held);
      }
    } else {
      for (const auto& layer : state.layers)
        see_one(layer.mixer.recent.vectors, layer.mixer.recent.length);
      see_one(last.vectors, last.length);
    }
  }

  void see_gradients(const std::string& prefix) {
    for (std::size_t i = 0; i < parameters_.size();) {
      const std::string name = prefix + parameters_[i].name;
      Recorded whole{parameters_[i].variable.shape().with(0, 0), {}};
      for (const std::size_t end = behind(i); i < end; ++i) {
        const auto part = record_of(parameters_[i].variable.grad());
        whole.values.insert(whole.values.end(), part.values.begin(), part.values.end());
        whole.shape = whole.shape.with(0, whole.shape[0] + part.shape[0]);
      }
      see(name, whole);
    }
  }

  GoldenCase& file_;
  Model model_;
  std::vector<Part> parameters_;
  Comparison result_;
};

/// Replays a case of the kind `transformer_xl*`, with a ShortTermMemory, or of the kind `lamemo`,
/// with a LaMemo, in the mixer's scalar on its backend. @throws infty::IoError
template <class Mixer>
Comparison replay_transformer_xl(GoldenCase& file) {
  return TransformerXlReplay<Mixer>(file).run();
}

}  // namespace infty::tests
