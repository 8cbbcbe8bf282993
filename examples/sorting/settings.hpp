// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/core/error.hpp>
#include <infty/data/sorting.hpp>
#include <infty/model/presets.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/schedule.hpp>

namespace sorting {

using infty::Index;

/// Everything that decides which numbers come out. The defaults are the demo's.
struct Settings {
  std::vector<std::string> models = {"infty", "none"};
  std::uint64_t seed = 1;

  infty::SortingConfig task{.symbols = 10, .length = 512};
  Index segment = 64;

  // Stride 1: with an LTM, the STM holds no more than without.
  infty::TransformerConfig model{.model_dim = 64,
                                 .layers = 2,
                                 .heads = 4,
                                 .feed_forward = 128,
                                 .short_term = 64,
                                 .long_term_stride = 1,
                                 .pre_norm = true};
  infty::LongTermConfig memory{
      .basis = 32, .widths = {.05, .2}, .samples = 48, .tau = .75, .ridge = 1};
  std::string density = "gaussian", parameters = "affine", sticky = "draws";

  Index batch = 32, steps = 1200;
  infty::AdamConfig adam{.learning_rate = 2e-3};
  std::string schedule = "cosine";
  Index warmup = 50;
  double last_rate = 0, clip = 1, kl_weight = 1e-6;

  Index evaluation_sequences = 512, bins = 50;
  std::uint64_t evaluation_seed = 0;
};

/// The paper's own setting for sequences of this length, from the library's preset. Training
/// sequences are drawn anew for every batch, where the authors go 20 times through 8,000.
inline Settings paper_settings(Index length) {
  const auto paper = infty::presets::sorting(length);
  Settings s;
  s.task = {.symbols = 20, .length = paper.length};
  s.segment = paper.segment;
  s.model = paper.model;
  s.model.long_term_stride = 1;
  s.memory = *paper.model.long_term;
  s.batch = paper.batch;
  s.steps = paper.steps;
  s.adam.learning_rate = paper.learning_rate;
  s.warmup = paper.warmup_steps;
  s.clip = paper.max_norm;
  s.kl_weight = paper.kl_weight_of_sum(s.task.symbols);
  s.evaluation_sequences = 800;  // the size of the paper's test set
  return s;
}

/// Calls see(group, name, field, help, choice...) for every setting: from this one list come the
/// options of the command line and the JSON in results and checkpoints.
template <class See>
void each_setting(Settings& s, See&& see) {
  const char* const run = "What to train";
  see(run, "models", s.models, "in this order", "infty", "sticky", "none");
  see(run, "seed", s.seed, "of weights and training sequences");

  const char* const task = "The task";
  see(task, "symbols", s.task.symbols, "different symbols");
  see(task, "length", s.task.length, "symbols in a sequence");
  see(task, "segment", s.segment, "symbols that are read at once");

  const char* const model = "The transformer";
  see(model, "width", s.model.model_dim, "d");
  see(model, "layers", s.model.layers, "one above the other");
  see(model, "heads", s.model.heads, "of attention");
  see(model, "head-dim", s.model.head_dim, "of each head; 0: width / heads");
  see(model, "feed-forward", s.model.feed_forward, "width of its inner layer");
  see(model, "short-term", s.model.short_term, "vectors in the short-term memory (STM)");
  see(model, "pre-norm", s.model.pre_norm, "norms before attention and feed-forward, not behind");
  see(model, "tie-embedding", s.model.tie_embedding, "the output layer is the embedding");
  see(model, "dropout", s.model.dropout, "while training");

  const char* const memory = "The long-term memory (LTM)";
  see(memory, "basis", s.memory.basis, "N, basis functions");
  see(memory, "widths", s.memory.widths, "of the Gaussian basis functions");
  see(memory, "samples", s.memory.samples, "M, of the past at a contraction");
  see(memory, "tau", s.memory.tau, "share of the LTM that the past is contracted to");
  see(memory, "stride", s.model.long_term_stride, "vectors leave the STM in groups of so many");
  see(memory, "ridge", s.memory.ridge, "penalty of the regression");
  see(memory, "gate", s.memory.gate, "new vectors pass a gate");
  see(memory, "density", s.density, "what attends to the LTM", "gaussian", "parabola");
  see(memory, "parameters", s.parameters, "how scores become a density", "affine", "moments");
  see(memory, "variance-floor", s.memory.variance_floor, "least variance of a density");
  see(memory, "sigma0", s.memory.sigma0, "width of the prior of densities");
  see(memory, "kl-weight", s.kl_weight, "of the sum of the divergences from that prior");
  see(memory, "threshold", s.memory.threshold, "vectors after which it is cleared; 0: never");
  see(memory, "sticky", s.sticky, "how `sticky` chooses its samples", "draws", "quantiles");
  see(memory, "sticky-bins", s.memory.bins, "of the histogram that `sticky` samples by");

  const char* const training = "Training";
  see(training, "batch", s.batch, "sequences a step");
  see(training, "steps", s.steps, "in all");
  see(training, "rate", s.adam.learning_rate, "learning rate of Adam, at its peak");
  see(training, "schedule", s.schedule, "of the rate", "cosine", "linear", "constant");
  see(training, "warmup", s.warmup, "steps in which the rate rises");
  see(training, "last-rate", s.last_rate, "what cosine and linear fall to");
  see(training, "clip", s.clip, "greatest global norm of the gradients; 0: any");
  see(training, "beta1", s.adam.beta1, "of Adam");
  see(training, "beta2", s.adam.beta2, "of Adam");
  see(training, "epsilon", s.adam.epsilon, "of Adam");
  see(training, "weight-decay", s.adam.weight_decay, "of Adam, decoupled");

  const char* const evaluation = "Evaluation";
  see(evaluation, "evaluation-sequences", s.evaluation_sequences, "that no model is trained on");
  see(evaluation, "evaluation-seed", s.evaluation_seed, "of these, the same for all models");
  see(evaluation, "bins", s.bins, "of the histogram of attention");
}

/// The configuration of one of the models.
inline infty::TransformerConfig model_config(const Settings& s, const std::string& name) {
  infty::TransformerConfig config = s.model;
  config.vocabulary = infty::SortingTask(s.task).vocabulary();
  config.long_term.reset();
  if (name == "none") return config;
  config.long_term = s.memory;
  config.long_term->sampling_seed = s.seed;
  config.long_term->parameters = s.parameters == "affine" ? infty::DensityParameters::affine
                                                          : infty::DensityParameters::moments;
  if (name == "sticky")
    config.long_term->resampling =
        s.sticky == "draws" ? infty::Resampling::sticky : infty::Resampling::sticky_quantiles;
  return config;
}

/// The learning rate of a step, the first of which is 0.
inline double rate_of(const Settings& s, Index step) {
  const double peak = s.adam.learning_rate;
  if (s.schedule == "cosine")
    return infty::CosineSchedule{peak, s.warmup, s.steps, s.last_rate}(step);
  if (s.schedule == "linear")
    return infty::LinearSchedule{peak, s.warmup, s.steps, s.last_rate}(step);
  return infty::ConstantSchedule{peak, s.warmup}(step);
}

/// Throws infty::ValueError that names the first setting out of its range.
inline void validate(const Settings& s) {
  const auto at_least = [](const char* name, Index value, Index least) {
    infty::require(value >= least, "sorting", "--", name, " is ", value, ": it must be at least ",
                   least);
  };
  infty::require(!s.models.empty(), "sorting", "--models is empty: it must name a model");
  for (std::size_t i = 0; i < s.models.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      infty::require(s.models[i] != s.models[j], "sorting", "--models names ", s.models[i],
                     " twice");
  at_least("symbols", s.task.symbols, 2);
  at_least("length", s.task.length, 1);
  at_least("segment", s.segment, 1);
  at_least("batch", s.batch, 1);
  at_least("steps", s.steps, 1);
  at_least("evaluation-sequences", s.evaluation_sequences, 1);
  at_least("bins", s.bins, 1);
  const auto not_negative = [](const char* name, double value) {
    infty::require(std::isfinite(value) && value >= 0, "sorting", "--", name, " is ", value,
                   ": it must be finite and at least 0");
  };
  not_negative("kl-weight", s.kl_weight);
  not_negative("clip", s.clip);
  infty::require(s.schedule == "constant" || s.steps > s.warmup, "sorting", "--steps is ", s.steps,
                 ": it must be above --warmup = ", s.warmup);
  s.adam.validate();
  rate_of(s, 0);
  for (const std::string& name : s.models) model_config(s, name).validate();
}

inline nlohmann::json to_json(const Settings& settings) {
  auto json = nlohmann::json::object();
  each_setting(const_cast<Settings&>(settings),
               [&](const char*, const char* name, const auto& field, const auto&...) {
                 json[name] = field;
               });
  return json;
}

/// The settings in a checkpoint. Throws nlohmann::json::exception for one that is missing.
inline Settings settings_from(const nlohmann::json& json) {
  Settings settings;
  each_setting(settings, [&](const char*, const char* name, auto& field, const auto&...) {
    json.at(name).get_to(field);
  });
  return settings;
}

}  // namespace sorting
