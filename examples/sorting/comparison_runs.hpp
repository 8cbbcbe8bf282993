// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../support/answering.hpp"
#include "../support/finished_runs.hpp"
#include "comparison_settings.hpp"

namespace sorting {

/// Constants of a model that are tried: how many vectors become a compressed one, and the weight of
/// the loss that this is trained by. Both are 0 for models that compress nothing.
struct Try {
  Index rate = 0;
  double weight = 0;
};

/// One training run: what it is, and what came out.
struct Run {
  Index length = 0;
  std::string model;
  Index rate = 0;
  double weight = 0;
  std::uint64_t seed = 0;
  Index parameters = 0;
  double loss = 0;        ///< mean over the last tenth of the steps; -1 where it was no number
  double validation = 0;  ///< accuracy on the sequences by which constants are chosen
  double accuracy = 0;    ///< on others
  double seconds = 0;

  std::string name() const { return support::run_name(length, model, rate, weight, seed); }
};

template <class See>
void each_field(Run& run, See&& see) {
  see("length", run.length);
  see("model", run.model);
  see("rate", run.rate);
  see("weight", run.weight);
  see("seed", run.seed);
  see("parameters", run.parameters);
  see("loss", run.loss);
  see("validation", run.validation);
  see("accuracy", run.accuracy);
  see("seconds", run.seconds);
}

/// What is tried of a model at a length. Rates as in the paper's App. C.1: there 2 for 4,000
/// symbols, 2 to 6 for 8,000, 2 to 12 for 16,000, which is until the segment, the short-term memory
/// and what the compressed vectors stand for are as many vectors as there are symbols.
inline std::vector<Try> tries_of(const ComparisonSettings& s, const std::string& model,
                                 Index length) {
  if (model != "compressive") return {{}};
  std::vector<Try> tries;
  for (const Index rate : s.compared.compression_rates) {
    for (const double weight : s.compared.auxiliary_weights) tries.push_back({rate, weight});
    const Settings& b = s.base;
    if (b.segment + b.short_term.capacity + rate * b.memory.basis >= length) break;
  }
  return tries;
}

using Runs = support::FinishedRuns<Run>;

inline const Run* find(const Runs& runs, Index length, const std::string& model, const Try& tried,
                       std::uint64_t seed) {
  return runs.find(support::run_name(length, model, tried.rate, tried.weight, seed));
}

/// The try that had, with the first seed, the best accuracy on the sequences for choosing.
inline Try best_try(const ComparisonSettings& s, const Runs& runs, const std::string& model,
                    Index length) {
  const auto tries = tries_of(s, model, length);
  Try best = tries.front();
  const Run* of_best = nullptr;
  for (const Try& tried : tries) {
    const Run* const run = find(runs, length, model, tried, s.compared.seeds.front());
    if (run && (!of_best || run->validation > of_best->validation)) {
      of_best = run;
      best = tried;
    }
  }
  return best;
}

/// Whether a try can be chosen: with the first seed, all are done.
inline bool all_tried(const ComparisonSettings& s, const Runs& runs, const std::string& model,
                      Index length) {
  return std::ranges::all_of(tries_of(s, model, length), [&](const Try& tried) {
    return find(runs, length, model, tried, s.compared.seeds.front()) != nullptr;
  });
}

/// The model of a run.
inline std::unique_ptr<support::Model> make_model(const ComparisonSettings& s, const Run& run) {
  support::ModelConfig config = chosen_model(settings_at(s, run.length, run.seed), run.model);
  if (run.rate > 0) config.compression_rate = run.rate;
  return support::make_model(config);
}

/// Trains and evaluates; fills in what came out. A run whose loss is no number at some step has no
/// answer right. `done` is called as support::train does.
template <class Done>
Run finish(const ComparisonSettings& settings, Run run, const support::Saving& saving,
           const std::filesystem::path& unfinished, Done&& done) {
  double start = support::computed();
  const Settings s = settings_at(settings, run.length, run.seed);
  const infty::SortingTask task(s.task);
  const auto model = make_model(settings, run);
  run.parameters = model->parameters();
  // The weight of a sum over rows, heads and queries, as the one of their mean.
  const auto terms = static_cast<double>(s.batch * s.model.heads * s.task.symbols);
  const support::Training training{
      .trainer = trainer_config(s, saving),
      .batch = s.batch,
      .segment = s.segment,
      .objective = {.kl_weight = s.kl_weight * terms, .auxiliary_weight = run.weight},
      .dropout = s.model.dropout > 0,
      .seed = run.seed,
      .unfinished = unfinished};
  const auto questions = [&](Index step) {
    infty::Random sequences(run.seed, 1);
    sequences.seek(static_cast<std::uint64_t>(step * s.batch));
    return support::sample(task, s.batch, sequences);
  };
  const auto accuracy = [&](std::uint64_t stream) {
    support::Marks marks;
    infty::Random random(0, stream);
    examine(*model, training, s.evaluation_sequences, random, marks,
            [&](Index rows, infty::Random& draws) { return support::sample(task, rows, draws); });
    return marks.accuracy();
  };
  try {
    const support::Behind behind = support::train(
        *model, training, questions, [&] { return accuracy(3); }, done);
    run.loss = behind.loss;
    run.seconds = behind.seconds;
    start = support::computed();
    run.validation = accuracy(3);
    run.accuracy = accuracy(2);  // on those of the floors
  } catch (const infty::NonFiniteError&) {
    run.loss = -1;
  }
  run.seconds += support::computed() - start;
  return run;
}

}  // namespace sorting
