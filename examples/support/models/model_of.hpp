// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <any>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <infty/eigen/backend.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/trainer.hpp>

#include "../model.hpp"

namespace support {

/// The `Model` of one memory.
template <template <class, class> class M>
class ModelOf final : public Model {
  using Lm = infty::TransformerLM<float, M>;
  using LmState = typename Lm::State;
  using Tokens = infty::Tensor<Index>;
  using V = infty::Variable<float>;

 public:
  ModelOf(const ModelConfig& config, typename Lm::MemoryConfig memory)
      : model_(config.transformer, std::move(memory), infty::Random(config.seed)),
        adam_(model_, config.adam),
        parameters_(infty::count_parameters(model_)) {}

  Index parameters() const override { return parameters_; }
  Index steps() const override { return adam_.steps(); }

  State make_state(Index batch, Index first_stream) const override {
    return model_.make_state(batch, first_stream);
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
    const auto output = model_.forward(of(state), shaped(batch.batch, batch.inputs));
    return finite("a loss", model_.losses(output.hidden, shaped(batch.batch, batch.targets)));
  }
  std::vector<Index> likeliest(State& state, const infty::TextBatch& batch) const override {
    const auto guard = infty::no_grad();
    return likeliest_of(model_.forward(of(state), shaped(batch.batch, batch.inputs)).hidden);
  }
  std::vector<float> logits(State& state, Index batch,
                            const std::vector<Index>& tokens) const override {
    const auto guard = infty::no_grad();
    const auto output = model_.forward(of(state), shaped(batch, tokens));
    const Index length = output.hidden.dim(1);
    return finite("a score", model_.logits(narrow(output.hidden, length - 1, length)));
  }

  std::vector<LongTermView> look(State& state, const std::vector<Index>& tokens) const override {
    const auto guard = infty::no_grad();
    std::vector<LongTermView> views;
    if constexpr (requires(LmState& s) { s.layers.front().long_term->memory.coefficients; }) {
      for (std::size_t i = 0; i < model_.layers.size(); ++i) {
        const auto& layer = model_.layers[i];
        const auto& memory = *layer.memory.long_term;
        const auto& past = *of(state).layers[i].long_term;
        LongTermView& view = views.emplace_back();
        view.locations = memory.next_locations(past.memory).to_vector();
        V taken(past.leaving.vectors);
        if (layer.pre_norm) taken = layer.attention_norm.forward(taken);
        if (memory.config().gate) taken = infty::gate(taken, memory.gate_weight, memory.gate_bias);
        view.taken = taken.value().to_vector();
      }
    }
    const auto output = model_.forward(of(state), shaped(1, tokens));
    if constexpr (requires(LmState& s) { s.layers.front().long_term->memory.coefficients; }) {
      for (std::size_t i = 0; i < views.size(); ++i) {
        const auto& memory = of(state).layers[i].long_term->memory;
        views[i].written = memory.written.front();
        views[i].writes = memory.writes.front();
        views[i].coefficients = memory.coefficients.value().to_vector();
        const auto both = output.densities[i].value().to_vector();
        const auto middle = both.begin() + std::ssize(both) / 2;
        views[i].mu.assign(both.begin(), middle);
        for (auto at = middle; at != both.end(); ++at) views[i].sigma.push_back(std::sqrt(*at));
      }
    }
    return views;
  }

  StepResult step(State& state, const infty::TextBatch& batch, const StepConfig& config,
                  bool with_likeliest) override {
    const Tokens inputs = shaped(batch.batch, batch.inputs);
    const Tokens targets = shaped(batch.batch, batch.targets);
    const auto queries = static_cast<double>(batch.batch * model_.config().heads * batch.length);
    V loss;
    std::vector<Index> predicted;
    const auto done = infty::train_step(
        adam_, {.learning_rate = config.learning_rate, .max_norm = config.max_norm}, [&] {
          const auto output = model_.forward(of(state), inputs, config.dropout);
          if (with_likeliest) {
            const auto guard = infty::no_grad();
            predicted = likeliest_of(output.hidden);
          }
          loss = scale(sum(model_.losses(output.hidden, targets)),
                       1 / static_cast<float>(std::max<Index>(batch.predicted, 1)));
          V total = loss;
          if (!output.densities.empty())
            total = total + scale(model_.kl_regulariser(output),
                                  static_cast<float>(config.kl_weight / queries));
          if (!output.auxiliary.empty())
            total = total + scale(model_.auxiliary_loss(output),
                                  static_cast<float>(config.auxiliary_weight));
          return total;
        });
    return {static_cast<double>(loss.value().to_vector().front()), done.grad_norm,
            std::move(predicted)};
  }

  void save_parameters(infty::SafetensorsWriter& writer) const override {
    infty::save_parameters(writer, model_, "model.");
  }
  void save_rest(infty::SafetensorsWriter& writer, const State& state) const override {
    infty::save_optimizer(writer, adam_, "optimizer.");
    infty::save_state(writer, std::any_cast<const LmState&>(state), "state.");
  }
  void load_parameters(infty::CheckpointLoader& loader) override {
    loader.parameters(model_, "model.");
  }
  void load_rest(infty::CheckpointLoader& loader, State& state) override {
    loader.optimizer(adam_, "optimizer.").state(of(state), "state.");
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

  std::vector<Index> likeliest_of(const V& hidden) const {
    const V logits = model_.logits(hidden);
    const auto values = logits.value().to_vector();
    const auto classes = static_cast<std::ptrdiff_t>(logits.dim(-1));
    std::vector<Index> out;
    for (auto at = values.begin(); at != values.end(); at += classes)
      out.push_back(std::max_element(at, at + classes) - at);
    return out;
  }

  Lm model_;
  infty::Adam<float> adam_;
  Index parameters_;
};

}  // namespace support
