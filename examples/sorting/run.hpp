// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "../support/interrupt.hpp"
#include "../support/json.hpp"
#include "../support/progress_line.hpp"
#include "../support/signals.hpp"
#include "backends.hpp"
#include "checkpoint.hpp"

namespace sorting {

inline double mean_of_last(const std::vector<double>& values, std::ptrdiff_t count) {
  count = std::min(count, std::ssize(values));
  return std::accumulate(values.end() - count, values.end(), 0.0) / static_cast<double>(count);
}

/// Trains and evaluates one model, of tensors in `Pool`; false if --stop-at stopped it.
template <class Density, class B, class Pool, template <class> class Basis = infty::GaussianBasis,
          class LongTerm = infty::LongTermMemory<float, Density, Basis<float>, B>>
bool run_model(const Options& options, const Settings& settings, const std::string& name,
               Finished& finished) {
  using Training = sorting::Training<float, Density, B, Basis, LongTerm>;
  Pool::instance().reset_peak();
  Training training(settings, name, options.saving, options.ranks, options.sharing);
  if (finished.current == name) training.load(options.resume);
  support::ProgressLine line(name, settings.steps, training.steps());
  const auto save = [&] {
    if (!options.save.empty())
      save_checkpoint(options.save, settings, finished, &training, options.ranks);
  };
  const auto stepped = [&](const infty::TrainStep&, const infty::Progress& progress) {
    const History& history = training.history();
    line.update(progress.done(), {{"loss", mean_of_last(history.loss, 50)},
                                  {"accuracy", mean_of_last(history.accuracy, 50)}});
  };
  const auto stop = [&] {
    const bool here = options.stop_at > 0 && training.steps() >= options.stop_at;
    return support::InterruptGuard::signal() != 0 || (here && training.steps() < settings.steps);
  };
  // Who stops it is told how to go on, whether it was to be saved or not.
  const auto go_on = [&] {
    if (options.save.empty())
      save_checkpoint(interrupted_of(options), settings, finished, &training, options.ranks);
    return "; to go on: " + command_to_go_on(options);
  };
  save();  // where it is to be saved, it can be from the beginning
  if (!training.run({.save = save, .stop = stop, .stepped = stepped})) {
    const std::string where =
        "stopped before step " + std::to_string(training.steps()) + " of " + name + go_on();
    if (const int signal = support::signal_of_all(options.ranks); signal != 0)
      throw support::Interrupted(signal, where);
    std::fprintf(stderr, "%s\n", where.c_str());
    return false;
  }
  infty::AnyCommunicator ranks = options.ranks;
  bool stopped = false;
  if (ranks.rank() == 0) {  // which evaluates alone, while the others wait
    support::ProgressLine evaluating(name + " evaluated", settings.evaluation_sequences, 0,
                                     "sequence");
    try {
      finished.results.push_back(training.result([&](Index done) {
        evaluating.update(done);
        support::stop_if_interrupted([] { return std::string(); });
      }));
    } catch (const support::Interrupted&) {
      stopped = true;
    }
  }
  if (infty::any_rank(ranks, stopped))
    throw support::Interrupted(support::signal_of_all(ranks),
                               "stopped evaluating " + name + ", which is trained" + go_on());
  if (ranks.rank() > 0) return true;
  finished.results.back().peak_tensor_bytes = Pool::instance().statistics().peak_bytes_in_use;
  training.save_model(finished.parameters);
  if (!options.save.empty())
    save_checkpoint<Training>(options.save, settings, finished, nullptr, {});
  return true;
}

}  // namespace sorting
