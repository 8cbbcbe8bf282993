// SPDX-License-Identifier: MIT
#pragma once

#include <any>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <infty/data/text_tensors.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/memory/ops/gate.hpp>
#include <infty/model/objective.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/sampling.hpp>

#include "../model.hpp"

namespace support {

/// The `Model` of one type of language model.
template <class Lm>
class ModelOf final : public Model {
  using LmState = typename Lm::State;
  using Tokens = infty::Tensor<Index>;
  using V = infty::Variable<float>;
  static constexpr bool has_long_term =
      requires(LmState& s) { s.body.layers.front().mixer.past->memory.coefficients; };

 public:
  /// Made of the model's sizes, of what else it is made from, and of the seed.
  template <class Parts>
  ModelOf(const ModelConfig& config, const Parts& parts)
      : model_(config.transformer, parts, infty::Random(config.seed)),
        parameters_(infty::count_parameters(model_)) {}

  Index parameters() const override { return parameters_; }
  std::vector<infty::NamedParameter<float>> named_parameters() override {
    return infty::named_parameters<float>(model_);
  }

  State make_state(Index batch, Index first_row) const override {
    return model_.make_state(batch, first_row);
  }
  void reset_row(State& state, Index row) const override { infty::reset_row(of(state), row); }
  std::size_t bytes_of(const State& state) const override {
    return infty::bytes_of(std::any_cast<const LmState&>(state));
  }

  void observe(State& state, Index batch, const std::vector<Index>& tokens,
               Index segment) const override {
    model_.observe(of(state), shaped(batch, tokens), segment);
  }
  std::vector<float> losses(State& state, const infty::TextBatch& batch) const override {
    const auto guard = infty::no_grad();
    const V hidden = model_.forward(of(state), infty::input_tokens(batch));
    return finite("a loss", model_.losses(hidden, infty::target_tokens(batch)));
  }
  std::vector<Index> likeliest(State& state, const infty::TextBatch& batch) const override {
    const auto guard = infty::no_grad();
    const V hidden = model_.forward(of(state), infty::input_tokens(batch));
    return infty::argmax(model_.logits(hidden).value()).to_vector();
  }
  std::vector<float> logits(State& state, Index batch,
                            const std::vector<Index>& tokens) const override {
    const auto guard = infty::no_grad();
    const V hidden = model_.forward(of(state), shaped(batch, tokens));
    const Index length = hidden.dim(1);
    return finite("a score", model_.logits(narrow(hidden, length - 1, length)));
  }

  std::vector<LongTermView> look(State& state, const std::vector<Index>& tokens) const override {
    const auto guard = infty::no_grad();
    std::vector<LongTermView> views;
    if constexpr (has_long_term) {
      for (std::size_t i = 0; i < model_.body.layers.size(); ++i) {
        const auto& layer = model_.body.layers[i];
        const auto& memory = *layer.mixer.memory;
        const auto& past = *of(state).body.layers[i].mixer.past;
        LongTermView& view = views.emplace_back();
        view.locations = memory.next_locations(past.memory).to_vector();
        V taken(past.leaving.vectors);
        if (layer.norms_in_front) taken = layer.mixer_norm.forward(taken);
        if (memory.config().gate) taken = infty::gate(taken, memory.gate_weight, memory.gate_bias);
        view.taken = taken.value().to_vector();
      }
    }
    infty::Pass<float> pass{.traced = true};
    model_.forward(of(state), shaped(1, tokens), pass);
    if constexpr (has_long_term) {
      for (std::size_t i = 0; i < views.size(); ++i) {
        const auto& memory = of(state).body.layers[i].mixer.past->memory;
        views[i].written = memory.written.front();
        views[i].writes = memory.writes.front();
        views[i].coefficients = memory.coefficients.value().to_vector();
        const auto both = pass.trace[i].value.value().to_vector();
        const auto middle = both.begin() + std::ssize(both) / 2;
        views[i].mu.assign(both.begin(), middle);
        for (auto at = middle; at != both.end(); ++at) views[i].sigma.push_back(std::sqrt(*at));
      }
    }
    return views;
  }

  infty::Objective<float> objective(State& state, const infty::TextBatch& batch,
                                    const ObjectiveConfig& config) const override {
    infty::Pass<float> pass{.random = config.dropout};
    const V hidden = model_.forward(of(state), infty::input_tokens(batch), pass);
    return infty::objective(
        model_, hidden, infty::target_tokens(batch), pass,
        {{"divergence",
          infty::weight_of_sum(config.kl_weight, batch.batch, model_.config().heads, batch.length)},
         {"compression", config.auxiliary_weight}});
  }

  void save_state(infty::SafetensorsWriter& writer, const State& state) const override {
    infty::save_state(writer, std::any_cast<const LmState&>(state), "state.");
  }
  void load_state(infty::CheckpointLoader& loader, State& state) const override {
    loader.state(of(state), "state.");
  }
  void load_parameters(infty::CheckpointLoader& loader) override {
    loader.parameters(model_, "model.");
  }

 private:
  static LmState& of(State& state) { return std::any_cast<LmState&>(state); }

  static Tokens shaped(Index batch, const std::vector<Index>& tokens) {
    return Tokens::from({batch, std::ssize(tokens) / batch}, tokens);
  }

  /// The values, none of them NaN or infinity: throws infty::NonFiniteError.
  static std::vector<float> finite(const char* what, const V& values) {
    infty::require<infty::NonFiniteError>(infty::detail::all_finite(values.value()), "model", what,
                                          " is not finite, though what the layers make is");
    return values.value().to_vector();
  }

  Lm model_;
  Index parameters_;
};

/// The `Model` of a transformer of one mixer.
template <class Mixer>
std::unique_ptr<Model> transformer_of(const ModelConfig& config,
                                      const typename Mixer::Config& memory) {
  return std::make_unique<ModelOf<infty::TransformerLM<Mixer>>>(config, memory);
}

}  // namespace support
