// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <infty/train/trainer.hpp>

#include "../support/interrupt.hpp"
#include "../support/json.hpp"
#include "../support/training.hpp"
#include "needle.hpp"
#include "run.hpp"
#include "sizes.hpp"
#include "tasks.hpp"

namespace recall {

/// Seconds that this process has computed.
inline double computed() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// The accuracy on sequences from a stream of random numbers of their own.
inline double evaluate(const support::Model& model, const Settings& s, const Task& task,
                       const std::string& memory, std::uint64_t stream) {
  Marks marks;
  infty::Random random(0, stream);
  for (const Source& source : task.tests.empty() ? task.training : task.tests) {
    const Index count = source.examples > 0 ? source.examples : s.evaluation_sequences;
    for (Index first = 0; first < count; first += task.batch) {
      const Index rows = std::min(task.batch, count - first);
      const Questions questions = source.sample(rows, random);
      auto state = model.make_state(rows, first);
      marks.add(model, state, reads_in_one(memory) ? in_one(questions) : questions, s.segment);
    }
  }
  return marks.accuracy();
}

/// Where the training of a run is saved until it is finished, and when.
struct Unfinished {
  std::filesystem::path path;
  support::Saving saving = {};
};

/// What has come of a training until now: the mean loss of the last tenth of its steps, as far as
/// they are done, the seconds that it has taken, and the accuracy behind the last epoch, where it
/// is asked for.
struct Behind {
  double loss = 0, seconds = 0, accuracy = 0;
};

template <class See>
void each_field(Behind& behind, See&& see) {
  see("loss", behind.loss);
  see("seconds", behind.seconds);
  see("accuracy", behind.accuracy);
}

/// Trains a model, from its checkpoint on if there is one. The gradient is that of the segments
/// that ask. `done(steps)` is called where it begins and behind each step, with how many more are
/// done. Throws support::Interrupted where a signal came, when it is saved.
template <class Done>
Behind train(support::Model& model, const Settings& s, const Task& task, const std::string& memory,
             double rate, std::uint64_t seed, const Unfinished& unfinished, Done&& done) {
  infty::TrainerConfig config = task.trainer;
  config.adam.learning_rate = rate;
  config.save_every = unfinished.saving.every;
  config.save_minutes = unfinished.saving.minutes;
  infty::Trainer trainer(model.named_parameters(), config);
  const std::vector<Lesson> lessons = lessons_of(task);
  const Index counted = std::max<Index>(1, config.steps / 10);
  infty::Objective<float> made;
  Behind behind;
  trainer.keep_text(
      "behind", [&] { return support::json_of(behind).dump(); },
      [&](const std::string& text) {
        const auto there = support::parse<Behind>(text, unfinished.path.string() + ": behind");
        return [&behind, there] { behind = there; };
      });
  if (std::filesystem::exists(unfinished.path)) trainer.load(unfinished.path);
  done(trainer.steps());
  const auto enough = [&] { return behind.accuracy > task.enough; };
  double since = computed();
  const bool ended = trainer.run(
      [&] {
        const Index step = trainer.steps();
        const Lesson& lesson = lessons[static_cast<std::size_t>(step % std::ssize(lessons))];
        infty::Random sequences(seed, 1);
        const bool fresh = lesson.source->examples == 0;
        sequences.seek(static_cast<std::uint64_t>(fresh ? step * task.batch : lesson.first));
        Questions questions = lesson.source->sample(lesson.rows, sequences);
        if (reads_in_one(memory)) questions = in_one(questions);
        auto state = model.make_state(lesson.rows, step * task.batch);
        if (!questions.tokens.empty())
          model.observe(state, lesson.rows, questions.tokens, s.segment);
        made = objective(model, state, questions.asked, {.kl_weight = s.kl_weight});
        return made.total;
      },
      {.save = [&] { trainer.save(unfinished.path); },
       .stop = [&] { return enough() || support::InterruptGuard::signal() != 0; },
       .stepped =
           [&](const infty::TrainStep&, const infty::Progress& progress) {
             if (progress.done() > config.steps - counted)
               behind.loss +=
                   static_cast<double>(made.loss.value().item()) / static_cast<double>(counted);
             if (task.enough < 1 && progress.done() % std::ssize(lessons) == 0) {
               behind.accuracy = evaluate(model, s, task, memory, 2);
               if (enough()) behind.loss = static_cast<double>(made.loss.value().item());
             }
             const double now = computed();
             behind.seconds += now - since;
             since = now;
             done(1);
           }});
  if (!ended && !enough()) throw support::Interrupted(support::InterruptGuard::signal(), "stopped");
  done(config.steps - trainer.steps());
  return behind;
}

/// The model of a run, by the size of its memory.
inline std::unique_ptr<support::Model> model_of(const Size& size, const Task& task,
                                                std::uint64_t seed) {
  support::ModelConfig config = size.config;
  config.seed = seed;
  config.transformer.vocabulary = task.vocabulary;
  return support::make_model(config);
}

/// Trains and evaluates. A run whose loss is no number at some step has no answer right.
template <class Done>
Cell cell_of(const Run& run, const Settings& s, const Task& task, const Size& size,
             const Unfinished& unfinished, Done&& done) {
  double start = computed();
  const auto model = model_of(size, task, run.seed);
  Cell cell{.run = run, .parameters = model->parameters(), .bytes = size.bytes, .held = size.held};
  try {
    const Behind behind = train(*model, s, task, run.memory, run.rate, run.seed, unfinished, done);
    cell.loss = behind.loss;
    cell.seconds = behind.seconds;
    start = computed();
    cell.validation = evaluate(*model, s, task, run.memory, 2);
    cell.accuracy = evaluate(*model, s, task, run.memory, 3);
    if (!task.distances.empty()) cell.distances = needle_at(*model, s, run.memory);
  } catch (const infty::NonFiniteError&) {
    cell.loss = -1;
  }
  cell.seconds += computed() - start;
  return cell;
}

}  // namespace recall
