// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include <infty/train/progress.hpp>
#include <infty/train/train_step.hpp>

namespace infty {

/// What `Trainer::run` does beside training; each may be left out.
struct TrainerRun {
  /// Called when a checkpoint is due: every `save_every` steps and where the last is `save_minutes`
  /// old, which the configuration says; behind the last step, and where it stops.
  std::function<void()> save = {};
  /// Asked before every step, and behind the last, whether to stop: for a signal, or a clock.
  std::function<bool()> stop = {};
  /// Called behind every step, before it is saved: for logs, evaluation, and a line on the
  /// progress.
  std::function<void(const TrainStep&, const Progress&)> stepped = {};
};

}  // namespace infty
