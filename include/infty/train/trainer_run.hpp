// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <ratio>

#include <infty/core/error.hpp>
#include <infty/train/progress.hpp>
#include <infty/train/train_step.hpp>
#include <infty/train/trainer_config.hpp>

namespace infty {

/// What `Trainer::run` does beside training; each may be left out.
struct TrainerRun {
  /// Called when a checkpoint is due: every `save_every` steps and where the last is `save_minutes`
  /// old, which the configuration says; behind the last step, and where it stops.
  std::function<void()> save = {};
  /// Asked before every step, and behind the last, whether to stop: for a signal, or a clock. Of
  /// several ranks some may have it and others not.
  std::function<bool()> stop = {};
  /// Called behind every step, before it is saved: for logs, evaluation, and a line on the
  /// progress.
  std::function<void(const TrainStep&, const Progress&)> stepped = {};
};

namespace detail {

/// Takes all steps that are left by `take()`; whether to stop or to save is asked of `agree`.
/// @param steps  steps() that are done
/// @return  whether all steps are done; false where it was asked to stop, behind the last one, too
template <class Steps, class Take, class Agree>
bool run_steps(const TrainerConfig& config, Steps&& steps, Take&& take, Agree&& agree,
               const TrainerRun& options) {
  require(steps() <= config.steps, "Trainer::run", steps(), " steps are done, of ", config.steps);
  Progress progress(config.steps, steps());
  Index saved = -1;
  auto since = Progress::Clock::now();
  const auto save = [&] {
    if (options.save && saved != steps()) options.save();
    saved = steps();
    since = Progress::Clock::now();
  };
  const auto due = [&] {
    const std::chrono::duration<double, std::ratio<60>> old = Progress::Clock::now() - since;
    return steps() % config.save_every == 0 || steps() == config.steps ||
           (config.save_minutes > 0 && old.count() >= config.save_minutes);
  };
  for (;;) {
    if (agree(options.stop && options.stop())) {
      save();
      return false;
    }
    if (steps() == config.steps) return true;
    const TrainStep done = take();
    progress.update(steps());
    if (options.stepped) options.stepped(done, progress);
    if (agree(due())) save();
  }
}

}  // namespace detail

}  // namespace infty
