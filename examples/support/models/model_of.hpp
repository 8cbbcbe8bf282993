// SPDX-License-Identifier: MIT
#pragma once

#include <any>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/data/text_tensors.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/model/objective.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/sampling.hpp>
#include <infty/train/replay.hpp>

#include "../looking.hpp"
#include "../model.hpp"
#include "../model_reading.hpp"

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
    return read(state, batch, {}).losses;
  }
  Reading read(State& state, const infty::TextBatch& batch, const Wanted& wanted) const override {
    const auto guard = infty::no_grad();
    infty::Pass<float> pass{.retrieved = infty::retrieved_tokens(batch), .keep = wanted.keys};
    const V hidden = model_.forward(of(state), infty::input_tokens(batch), pass);
    const Index places = batch.batch * batch.length;
    const auto by_place = [&](const infty::Tensor<float>& x) {
      return x.reshape({places, x.size() / places});
    };
    Reading out;
    out.losses = finite("a loss", model_.losses(hidden, infty::target_tokens(batch)));
    if (wanted.keys != infty::FeedInput::none) {
      infty::require(pass.feed_input.size() > 0, "model",
                     "its last layer keeps no input of a feed-forward layer: nothing can be looked "
                     "up by it");
      out.keys = by_place(pass.feed_input);
    }
    if (wanted.hidden) out.hidden = by_place(hidden.value());
    if (wanted.scores) {
      const V scores = model_.logits(hidden);
      require_finite("a score", scores);
      out.scores = by_place(scores.value());
    }
    return out;
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
        views.push_back(view_of_write(
            *layer.mixer.memory, *of(state).body.layers[i].mixer.past,
            [&](const V& x) { return layer.norms_in_front ? layer.mixer_norm.forward(x) : x; }));
      }
    }
    infty::Pass<float> pass{.traced = true};
    model_.forward(of(state), shaped(1, tokens), pass);
    add_trace(views, pass);
    if constexpr (has_long_term)
      for (std::size_t i = 0; i < views.size(); ++i)
        views[i].coefficients =
            of(state).body.layers[i].mixer.past->memory.coefficients.value().to_vector();
    add_counts(views, of(state));
    return views;
  }

  std::vector<Shown> shown(State& state, const infty::TextBatch& batch) const override {
    const auto guard = infty::no_grad();
    infty::Pass<float> pass{.traced = true, .retrieved = infty::retrieved_tokens(batch)};
    model_.forward(of(state), infty::input_tokens(batch), pass);
    return shown_to(pass);
  }

  infty::Objective<float> objective(State& state, std::span<const infty::TextBatch> segments,
                                    const ObjectiveConfig& config) const override {
    if (segments.size() == 1 && !config.replay)
      return segment_objective(of(state), segments.front(), config);
    double targets = 0;
    for (const infty::TextBatch& segment : segments)
      targets += static_cast<double>(segment.predicted);
    // Each target counts the same, in whatever segment it stands.
    const auto share = [targets](const infty::TextBatch& segment) {
      return static_cast<float>(static_cast<double>(segment.predicted) / targets);
    };
    V total(infty::Tensor<float>::zeros({})), loss = total;
    if (!config.replay) {
      for (const infty::TextBatch& segment : segments) {
        const auto made = segment_objective(of(state), segment, config);
        total = total + scale(made.total, share(segment));
        loss = loss + scale(made.loss.detach(), share(segment));
      }
      return {total, loss};
    }
    const auto losses = std::make_shared<std::vector<V>>(segments.size());
    const auto segment = [=, this](Index i, LmState& s) {
      const auto at = static_cast<std::size_t>(i);
      const auto made = segment_objective(s, segments[at], config);
      (*losses)[at] = scale(made.loss.detach(), share(segments[at]));
      return scale(made.total, share(segments[at]));
    };
    total =
        infty::replayed_loss(of(state), std::ssize(segments), segment, {.random = config.dropout});
    for (const V& one : *losses) loss = loss + one;
    return {total, loss};
  }

  void save_state(infty::SafetensorsWriter& writer, const State& state,
                  const std::string& prefix) const override {
    infty::save_state(writer, std::any_cast<const LmState&>(state), prefix);
  }
  void load_state(infty::CheckpointLoader& loader, State& state,
                  const std::string& prefix) const override {
    loader.state(of(state), prefix);
  }
  void load_parameters(infty::CheckpointLoader& loader) override {
    loader.parameters(model_, "model.");
  }

 private:
  /// Of one segment. What is computed twice is told that it trains, for no tape records the first
  /// time.
  infty::Objective<float> segment_objective(LmState& state, const infty::TextBatch& batch,
                                            const ObjectiveConfig& config) const {
    if (std::ssize(batch.reset) == batch.batch)
      state = model_.make_state(batch.batch, batch.first_row);
    else
      for (const Index row : batch.reset) infty::reset_row(state, row);
    infty::Pass<float> pass{.random = config.dropout,
                            .regularised = config.replay,
                            .retrieved = infty::retrieved_tokens(batch)};
    if (config.replay) pass.training = true;
    const V hidden = model_.forward(state, infty::input_tokens(batch), pass);
    return infty::objective(
        model_, hidden, infty::target_tokens(batch), pass,
        {{"divergence",
          infty::weight_of_sum(config.kl_weight, batch.batch, model_.config().heads, batch.length)},
         {"compression", config.auxiliary_weight}});
  }

  static LmState& of(State& state) { return std::any_cast<LmState&>(state); }

  static Tokens shaped(Index batch, const std::vector<Index>& tokens) {
    return Tokens::from({batch, std::ssize(tokens) / batch}, tokens);
  }

  /// The values, none of them NaN or infinity: throws infty::NonFiniteError.
  static std::vector<float> finite(const char* what, const V& values) {
    require_finite(what, values);
    return values.value().to_vector();
  }
  static void require_finite(const char* what, const V& values) {
    infty::require<infty::NonFiniteError>(infty::detail::all_finite(values.value()), "model", what,
                                          " is not finite, though what the layers make is");
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
