// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/random.hpp>
#include <infty/train/trainer.hpp>

#include "behind.hpp"
#include "interrupt.hpp"
#include "questions.hpp"

// Models that are chosen when the program runs: how they learn to answer, and
// how well they do.

namespace support {

using infty::Index;

/// How a model learns from questions.
struct Training {
  infty::TrainerConfig trainer = {};
  Index batch = 1, segment = 1;      ///< sequences a step, at most; tokens that are read at once
  ObjectiveConfig objective = {};    ///< but for `dropout`
  bool dropout = false;              ///< whether the model has any
  std::uint64_t seed = 1;            ///< of what is dropped
  std::filesystem::path unfinished;  ///< its checkpoint until it is finished
  Index epoch = 1;                   ///< steps
  double enough = 1;                 ///< an epoch that ends above this accuracy is the last one
  double values_rate = 0;            ///< of product keys' values, fixed; 0: that of all others
};

/// Trains a model, from its checkpoint on if there is one. questions(step) are those of a step; the
/// gradient is that of the segments that ask. accuracy() is asked behind each epoch where one below
/// 1 is enough, and again where it throws Interrupted, once the training goes on. `done(steps)` is
/// called where it begins and behind each step, with how many more are done. Throws Interrupted
/// where a signal came, when it is saved.
template <class Ask, class Accuracy, class Done>
Behind train(Model& model, const Training& training, Ask&& questions, Accuracy&& accuracy,
             Done&& done) {
  infty::Trainer trainer(model.named_parameters(), training.trainer);
  if (training.values_rate > 0) trainer.fix_rate(product_key_values, training.values_rate);
  infty::Random dropout(training.seed, 3);
  const Index steps = training.trainer.steps;
  ObjectiveConfig config = training.objective;
  infty::Objective<float> made;
  Behind behind;
  keep(trainer, behind, training.unfinished);
  if (training.dropout) {
    trainer.keep("dropout", dropout);
    config.dropout = &dropout;
  }
  // The loss of a step that ended an epoch, until accuracy() is known.
  std::optional<double> unasked;
  const std::string name = "unasked";
  trainer.keep_tensors(
      [&](infty::SafetensorsWriter& writer) {
        if (unasked) writer.add(name, infty::Shape{}, std::vector<double>{*unasked});
      },
      [&](infty::CheckpointLoader& loader) {
        if (!loader.file().has(name)) return;
        loader.file().check_shape(name, infty::Shape{});
        unasked = loader.file().read<double>(name).front();
      });
  if (std::filesystem::exists(training.unfinished)) trainer.load(training.unfinished);
  done(trainer.steps());
  const auto enough = [&] { return behind.accuracy > training.enough; };
  double since = computed();
  const auto count_seconds = [&] {
    const double now = computed();
    behind.seconds += now - std::exchange(since, now);
  };
  const auto ask = [&] {
    behind.accuracy = accuracy();
    if (enough()) behind.loss = *unasked;
    unasked.reset();
    count_seconds();
  };
  const bool ended = trainer.run(
      [&] {
        const Index step = trainer.steps();
        const Questions asked = questions(step);
        auto state = model.make_state(asked.batch(), step * training.batch);
        if (!asked.tokens.empty())
          model.observe(state, asked.batch(), asked.tokens, training.segment);
        made = objective(model, state, asked.asked, config);
        return made.total;
      },
      {.save = [&] { trainer.save(training.unfinished); },
       .stop =
           [&] {
             try {
               if (unasked) ask();
             } catch (const Interrupted&) {
               return true;
             }
             return enough() || InterruptGuard::signal() != 0;
           },
       .stepped =
           [&](const infty::TrainStep&, const infty::Progress& progress) {
             const auto loss = static_cast<double>(made.loss.value().item());
             behind.add_loss(loss, progress.done(), steps);
             if (training.enough < 1 && progress.done() % training.epoch == 0) unasked = loss;
             count_seconds();
             done(1);
           }});
  if (!ended && !enough()) throw Interrupted(InterruptGuard::signal(), "stopped");
  done(steps - trainer.steps());
  return behind;
}

/// Adds how a model answers so many sequences, which sample(rows, random) draws. Throws Interrupted
/// where a signal came.
template <class Sample>
void examine(const Model& model, const Training& training, Index sequences, infty::Random& random,
             Marks& marks, Sample&& sample) {
  for (Index first = 0; first < sequences; first += training.batch) {
    stop_if_interrupted();
    const Index rows = std::min(training.batch, sequences - first);
    const Questions questions = sample(rows, random);
    auto state = model.make_state(rows, first);
    marks.add(model, state, questions, training.segment);
  }
}

}  // namespace support
