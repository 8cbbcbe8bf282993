// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/random.hpp>
#include <infty/train/trainer_config.hpp>

#include "../support/model.hpp"
#include "../support/questions.hpp"
#include "distances.hpp"

namespace recall {

/// Sequences that are drawn in one way.
struct Source {
  /// Draws them: row b of draw b alone.
  std::function<support::Questions(Index batch, infty::Random& random)> sample;
  /// To learn from: so many, the same in every epoch; 0: fresh ones in every step. To be tested
  /// with: so many; 0: as many as the settings say.
  Index examples = 0;
};

/// Is told of tokens that have been read.
using Told = std::function<void(Index tokens)>;

/// A task with known answers.
struct Task {
  std::string name;
  Index vocabulary = 0, length = 0;   ///< different tokens, and those of the longest sequence
  Index heads = 0;                    ///< of its models
  double chance = 0;                  ///< accuracy of whoever remembers nothing
  std::vector<Source> training;       ///< one behind the other in every epoch
  std::vector<Source> tests = {};     ///< empty: those of `training`
  infty::TrainerConfig trainer = {};  ///< but for the learning rate, and for when it is saved
  Index batch = 0;                    ///< sequences a step, at most
  double enough = 1;                  ///< an epoch that ends above this accuracy is the last one

  /// Further than training goes it is tested at these distances or lengths, of tokens, by
  /// far(model, memory, told), which reads so many tokens and calls told(tokens) for some of them
  /// that have been read.
  std::vector<Index> distances = {};
  std::function<std::vector<DistancePoint>(const support::Model&, const std::string&, const Told&)>
      far = {};
  Index far_tokens = 0;
};

/// The sequences of a step.
struct Lesson {
  const Source* source = nullptr;
  Index first = 0, rows = 0;  ///< draws
};

/// What part of a step's cost a token costs that is read for no gradient, by which a step is three
/// times as long.
inline double cost_of_token(const Task& task) {
  return 1 / (3 * static_cast<double>(task.batch * task.length));
}

/// Batches of a source's examples; of fresh sequences it is one.
inline Index batches_of(const Source& source, Index batch) {
  return source.examples == 0 ? 1 : (source.examples - 1) / batch + 1;
}

/// Steps of an epoch, the batches of all sources.
inline Index epoch_of(const Task& task) {
  Index steps = 0;
  for (const Source& source : task.training) steps += batches_of(source, task.batch);
  return steps;
}

/// That of a step, counted from 0 on.
inline Lesson lesson_of(const Task& task, Index step) {
  Index left = step % epoch_of(task), before = 0;
  for (const Source& source : task.training) {
    const Index steps = batches_of(source, task.batch);
    if (left < steps) {
      const Index first = left * task.batch;
      const bool fresh = source.examples == 0;
      return {&source, before + first,
              fresh ? task.batch : std::min(task.batch, source.examples - first)};
    }
    left -= steps;
    before += source.examples;
  }
  infty::raise<infty::ValueError>("lesson_of", "the task ", task.name,
                                  " has nothing to learn from");
}

}  // namespace recall
