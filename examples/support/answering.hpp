// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>

#include <infty/core/config.hpp>
#include <infty/core/random.hpp>
#include <infty/train/trainer.hpp>

#include "interrupt.hpp"
#include "json.hpp"
#include "questions.hpp"

// Models that are chosen when the program runs: how they learn to answer, and
// how well they do.

namespace support {

using infty::Index;

/// Seconds that this process has computed.
inline double computed() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

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
};

/// What has come of a training until now: the mean loss of the last tenth of its steps, as far as
/// they are done, or of the last one where an epoch ended above the accuracy that is enough; the
/// seconds that it has taken; and the accuracy behind the last epoch, where it is asked for.
struct Behind {
  double loss = 0, seconds = 0, accuracy = 0;
};

template <class See>
void each_field(Behind& behind, See&& see) {
  see("loss", behind.loss);
  see("seconds", behind.seconds);
  see("accuracy", behind.accuracy);
}

/// Trains a model, from its checkpoint on if there is one. questions(step) are those of a step; the
/// gradient is that of the segments that ask. accuracy() is asked behind each epoch where one below
/// 1 is enough. `done(steps)` is called where it begins and behind each step, with how many more
/// are done. Throws Interrupted where a signal came, when it is saved.
template <class Ask, class Accuracy, class Done>
Behind train(Model& model, const Training& training, Ask&& questions, Accuracy&& accuracy,
             Done&& done) {
  infty::Trainer trainer(model.named_parameters(), training.trainer);
  infty::Random dropout(training.seed, 3);
  const Index steps = training.trainer.steps, counted = std::max<Index>(1, steps / 10);
  ObjectiveConfig config = training.objective;
  infty::Objective<float> made;
  Behind behind;
  trainer.keep_text(
      "behind", [&] { return json_of(behind).dump(); },
      [&](const std::string& text) {
        const auto there = parse<Behind>(text, training.unfinished.string() + ": behind");
        return [&behind, there] { behind = there; };
      });
  if (training.dropout) {
    trainer.keep("dropout", dropout);
    config.dropout = &dropout;
  }
  if (std::filesystem::exists(training.unfinished)) trainer.load(training.unfinished);
  done(trainer.steps());
  const auto enough = [&] { return behind.accuracy > training.enough; };
  double since = computed();
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
       .stop = [&] { return enough() || InterruptGuard::signal() != 0; },
       .stepped =
           [&](const infty::TrainStep&, const infty::Progress& progress) {
             if (progress.done() > steps - counted)
               behind.loss +=
                   static_cast<double>(made.loss.value().item()) / static_cast<double>(counted);
             if (training.enough < 1 && progress.done() % training.epoch == 0) {
               behind.accuracy = accuracy();
               if (enough()) behind.loss = static_cast<double>(made.loss.value().item());
             }
             const double now = computed();
             behind.seconds += now - since;
             since = now;
             done(1);
           }});
  if (!ended && !enough()) throw Interrupted(InterruptGuard::signal(), "stopped");
  done(steps - trainer.steps());
  return behind;
}

/// Adds how a model answers so many sequences, which sample(rows, random) draws.
template <class Sample>
void examine(const Model& model, const Training& training, Index sequences, infty::Random& random,
             Marks& marks, Sample&& sample) {
  for (Index first = 0; first < sequences; first += training.batch) {
    const Index rows = std::min(training.batch, sequences - first);
    const Questions questions = sample(rows, random);
    auto state = model.make_state(rows, first);
    marks.add(model, state, questions, training.segment);
  }
}

}  // namespace support
