// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/data/sorting.hpp>
#include <infty/model/presets.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/adam.hpp>

#include "../support/model_need.hpp"
#include "../support/ranges.hpp"
#include "../support/training.hpp"
#include "../support/transformer.hpp"

namespace sorting {

using infty::Index;

/// Everything that decides which numbers come out. The defaults are the demo's.
struct Settings {
  std::vector<std::string> models = {"infty", "none"};
  std::uint64_t seed = 1;

  infty::SortingConfig task{.symbols = 10, .length = 512};
  Index segment = 64;

  infty::TransformerConfig model{.model_dim = 64,
                                 .layers = 2,
                                 .heads = 4,
                                 .feed_forward = 128,
                                 .pre_norm = true,
                                 .embedding_deviation = 0};
  // Stride 1: with an LTM, the STM holds no more than without.
  infty::ShortTermConfig short_term{.capacity = 64, .stride = 1};
  infty::LongTermConfig memory{
      .basis = 32, .widths = {.05, .2}, .samples = 48, .tau = .75, .ridge = 1};
  support::Contraction contraction;
  std::string functions = "gaussian", density = "gaussian", parameters = "affine", sticky = "draws";

  // Few sequences a step, for a demo that is soon over: gradients are noisy, so that their squares
  // are averaged over fewer steps, and the rate takes longer to rise.
  Index batch = 12, steps = 1500;
  infty::AdamConfig adam{.learning_rate = 4e-3, .beta2 = .98};
  std::string schedule = "cosine";
  Index warmup = 150;
  double last_rate = 0, clip = 1, kl_weight = 1e-6;
  std::string products = support::products_now();
  Index shards = 0;
  std::string reduce = "tree";

  Index evaluation_sequences = 512, bins = 50;
  std::uint64_t evaluation_seed = 0;
};

/// The models by name, in an order for tables.
inline const std::vector<std::string> model_names{
    "infty",         "sticky", "infty-power", "infty-uniform", "infty-mixed",
    "infty-learned", "xl",     "compressive", "none"};

/// The paper's own setting for sequences of this length, from the library's preset. Training
/// sequences are drawn anew for every batch, where the authors go 20 times through 8,000.
inline Settings paper_settings(Index length) {
  const auto paper = infty::presets::sorting(length);
  Settings s;
  s.task = {.symbols = 20, .length = paper.length};
  s.segment = paper.segment;
  s.model = paper.model;
  s.short_term = {.capacity = paper.memory.attention.capacity, .stride = 1};
  s.memory = *paper.memory.memory;
  s.batch = paper.batch;
  s.steps = paper.steps;
  s.adam = {.learning_rate = paper.learning_rate};
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
  see(run, "models", s.models, "in this order", model_names);
  see(run, "seed", s.seed, "of weights and training sequences");

  const char* const task = "The task";
  see(task, "symbols", s.task.symbols, "different symbols");
  see(task, "length", s.task.length, "symbols in a sequence");
  see(task, "segment", s.segment, "symbols that are read at once");

  const char* const model = "The transformer";
  support::each_transformer_setting(model, s.model, see);
  support::each_chosen(model, s.model, {{"head_dim", "head-dim"}}, see);
  support::each_chosen(model, s.short_term, {{"capacity", "short-term"}}, see);
  support::each_chosen(model, s.model, {{"tie_embedding", "tie-embedding"}, {"dropout"}}, see);

  const char* const memory = "The long-term memory (LTM)";
  support::each_chosen(memory, s.memory, {{"basis"}}, see);
  see(memory, "functions", s.functions, "what these are", "gaussian", "fourier", "power",
      "rectangular");
  support::each_chosen(memory, s.memory, {{"widths"}, {"samples"}, {"tau"}}, see);
  support::each_contraction_setting(memory, s.contraction, see);
  support::each_chosen(memory, s.short_term, {{"stride"}}, see);
  support::each_chosen(memory, s.memory,
                       {{"ridge"}, {"bounded"}, {"hold_short_writes", "hold"}, {"gate"}}, see);
  see(memory, "density", s.density, "what attends to the LTM", "gaussian", "parabola");
  see(memory, "parameters", s.parameters, "how scores become a density", "affine", "moments");
  support::each_chosen(memory, s.memory, {{"variance_floor", "variance-floor"}, {"sigma0"}}, see);
  see(memory, "kl-weight", s.kl_weight, "of the sum of the divergences from that prior");
  support::each_chosen(memory, s.memory, {{"threshold"}}, see);
  see(memory, "sticky", s.sticky, "how `sticky` chooses its samples", "draws", "quantiles");
  support::each_chosen(memory, s.memory, {{"bins", "sticky-bins"}}, see);

  const char* const training = "Training";
  see(training, "batch", s.batch, "sequences a step");
  support::each_training_setting(training, s, see);
  support::each_shard_setting(training, s, see);

  const char* const evaluation = "Evaluation";
  see(evaluation, "evaluation-sequences", s.evaluation_sequences, "that no model is trained on");
  see(evaluation, "evaluation-seed", s.evaluation_seed, "of these, the same for all models");
  see(evaluation, "bins", s.bins, "of the histogram of attention");
}

/// The sizes of all models.
inline infty::TransformerConfig model_config(const Settings& s) {
  infty::TransformerConfig config = s.model;
  config.vocabulary = infty::SortingTask(s.task).vocabulary();
  return config;
}

/// The word that programs have for a model's memory.
inline std::string memory_word(const std::string& name) {
  return name == "none" ? "xl" : name == "sticky" ? "infty-sticky" : name;
}

/// Whether a model has the LTM: `none` is without, `xl` and `compressive` have something else.
inline bool name_has_long_term(const std::string& name) {
  return support::is_infty(memory_word(name));
}

/// How the LTM of a model contracts its past.
inline std::string contraction_of(const Settings& s, const std::string& name) {
  return support::contraction_of(memory_word(name), s.contraction);
}

inline infty::DensityParameters density_parameters(const Settings& s) {
  return s.parameters == "affine" ? infty::DensityParameters::affine
                                  : infty::DensityParameters::moments;
}

/// The memory of one of the models; of one that is written by blocks as if there were none.
inline infty::InftyConfig memory_config(const Settings& s, const std::string& name) {
  infty::InftyConfig config{.attention = s.short_term, .memory = {}};
  if (!name_has_long_term(name)) return config;
  config.attention.capacity -= support::waiting_of(memory_word(name), s.contraction);
  config.memory = s.memory;
  if (contraction_of(s, name) != "fixed") config.memory->power = s.contraction.power;
  config.memory->sampling_seed = s.seed;
  config.memory->parameters = density_parameters(s);
  if (name == "sticky")
    config.memory->resampling =
        s.sticky == "draws" ? infty::Resampling::sticky : infty::Resampling::sticky_quantiles;
  return config;
}

using support::trainer_config;

/// One of the models, for what chooses the memory when it runs. All but `none`, which has the STM
/// alone, have as many vectors: `xl` in its STM, `compressive` half of them compressed.
inline support::ModelConfig chosen_model(const Settings& s, const std::string& name) {
  support::ModelConfig config{.memory = memory_word(name),
                              .seed = s.seed,
                              .transformer = s.model,
                              .memory_length = s.short_term.capacity,
                              .compressed = s.memory.basis,
                              .segment = s.short_term.resolved(name != "none").stride,
                              .long_term = s.memory,
                              .contraction = s.contraction};
  config.transformer.vocabulary = s.task.symbols + 1;
  if (name != "none") config.memory_length += config.compressed;
  config.long_term.parameters = density_parameters(s);
  return config;
}

/// Bytes that training and evaluating one of the models needs.
/// @param rate  vectors that become a compressed one, where there are such
inline double bytes_of(const Settings& s, const std::string& name, Index rate = 1) {
  support::ModelConfig config = chosen_model(s, name);
  config.compression_rate = rate;
  const support::ModelNeed need(config);
  const auto symbols = static_cast<double>(s.task.symbols),
             length = static_cast<double>(s.task.length),
             segment = static_cast<double>(std::min(s.segment, s.task.length)),
             bins = static_cast<double>(s.bins);
  // Sequences twice over: as they are drawn and as tokens; the state and the answers of a batch.
  const auto bytes = [&](double rows) {
    return rows * 2 * sizeof(Index) * (length + symbols) + need.state(rows) +
           std::max(need.segment(rows, segment, false), need.segment(rows, symbols, true));
  };
  return need.model() + bytes(static_cast<double>(s.batch)) +
         sizeof(double) * bins * static_cast<double>(s.model.layers) +
         sizeof(float) * bins * static_cast<double>(s.batch) * static_cast<double>(s.model.heads) *
             symbols / 64;
}

/// Whether a model is only in comparisons at several lengths.
inline bool is_compared_only(const std::string& name) {
  return name == "xl" || name == "compressive";
}

/// Throws infty::ValueError that names the first setting out of its range.
inline void check(const Settings& s) {
  support::validate_ranges("sorting", s);
  infty::require(!s.models.empty(), "sorting", "--models is empty: it must name a model");
  for (std::size_t i = 0; i < s.models.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      infty::require(s.models[i] != s.models[j], "sorting", "--models names ", s.models[i],
                     " twice");
  infty::require_at_least("sorting", "--symbols", s.task.symbols, 2);
  support::validate_training("sorting", s);
  support::validate_shards("sorting", s);
  support::check_transformer("sorting", s.model, true);
  infty::require(s.functions == "gaussian" || s.density == "gaussian", "sorting", "--functions ",
                 s.functions, " is in this program for --density gaussian");
  infty::require(
      s.parameters == "affine" || s.functions == "gaussian" || s.functions == "rectangular",
      "sorting", "--parameters moments is for functions with centres: --functions is ",
      s.functions);
  if (s.functions == "gaussian" && s.models != std::vector<std::string>{"none"})
    support::check_basis("sorting", "--basis", s.memory.basis, s.memory.widths);
  const auto widths = s.functions == "gaussian" ? std::ssize(s.memory.widths) : 1;
  for (const std::string& name : s.models)
    if (name_has_long_term(name))
      support::check_contraction("sorting", memory_word(name), s.contraction, s.model.heads,
                                 s.short_term.capacity, s.memory.basis / widths);
  for (const std::string& name : s.models)
    support::require_memory("sorting", s, [&](const Settings& of) { return bytes_of(of, name); });
  const infty::TransformerConfig config = model_config(s);
  config.validate();
  s.short_term.validate();
  for (const std::string& name : s.models)
    memory_config(s, name).resolved_memory(config.attention_sizes()).validate();
}

/// The same, and for a model that is only in comparisons: these are settings of one length.
inline void validate(const Settings& s) {
  check(s);
  for (const std::string& name : s.models)
    infty::require(!is_compared_only(name), "sorting", "--models names ", name,
                   ", which is compared with others at several --lengths");
}

}  // namespace sorting
