// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <infty/train/trainer.hpp>

#include "../support/interrupt.hpp"
#include "../support/json.hpp"
#include "../support/training.hpp"
#include "sizes.hpp"
#include "tasks.hpp"

namespace recall {

/// One training run: what it is, and what came out.
struct Cell {
  std::string task, memory;
  double rate = 0;
  std::uint64_t seed = 0;
  Index parameters = 0;
  std::size_t bytes = 0;  ///< of a row's state
  double loss = 0;        ///< mean over the last tenth of the steps; -1 where it was no number
  double validation = 0, accuracy = 0;
  double seconds = 0;

  auto key() const { return std::tie(task, memory, rate, seed); }
};

/// The share of answers that are right, on sequences from a stream of random numbers of their own.
inline double evaluate(const support::Model& model, const Settings& s, const Task& task,
                       std::uint64_t stream) {
  infty::Random random(0, stream);
  Index right = 0, asked = 0;
  for (Index first = 0; first < s.evaluation_sequences; first += s.batch) {
    const Index rows = std::min(s.batch, s.evaluation_sequences - first);
    const Questions questions = task.sample(rows, random);
    auto state = model.make_state(rows, first);
    model.observe(state, rows, questions.tokens, s.segment);
    const auto answer = model.likeliest(state, questions.last);
    for (std::size_t i = 0; i < answer.size(); ++i)
      right += answer[i] == questions.last.targets[i] ? 1 : 0;
    asked += std::ssize(answer);
  }
  return static_cast<double>(right) / static_cast<double>(asked);
}

/// Where the training of a run is saved until it is finished, and when.
struct Unfinished {
  std::filesystem::path path;
  support::Saving saving = {};
};

/// What has come of a training until now: the mean loss of the last tenth of its steps, as far as
/// they are done, and the seconds that it has taken.
struct Behind {
  double loss = 0, seconds = 0;
};

template <class See>
void each_field(Behind& behind, See&& see) {
  see("loss", behind.loss);
  see("seconds", behind.seconds);
}

/// Trains a model, from its checkpoint on if there is one. Every step reads fresh sequences; the
/// gradient is that of the last segment. `done(steps)` is called where it begins and behind each
/// step, with how many more are done. Throws support::Interrupted where a signal came, when it is
/// saved.
template <class Done>
Behind train(support::Model& model, const Settings& s, const Task& task, double rate,
             std::uint64_t seed, const Unfinished& unfinished, Done&& done) {
  infty::Trainer trainer(model.named_parameters(), {.steps = s.steps,
                                                    .adam = {.learning_rate = rate},
                                                    .warmup_steps = s.warmup,
                                                    .max_norm = s.clip,
                                                    .save_every = unfinished.saving.every,
                                                    .save_minutes = unfinished.saving.minutes});
  infty::Random sequences(seed, 1);
  const Index counted = std::max<Index>(1, s.steps / 10);
  infty::Objective<float> made;
  Behind behind;
  trainer.keep("sequences", sequences)
      .keep_text(
          "behind", [&] { return support::json_of(behind).dump(); },
          [&](const std::string& text) {
            const auto there = support::parse<Behind>(text, unfinished.path.string() + ": behind");
            return [&behind, there] { behind = there; };
          });
  if (std::filesystem::exists(unfinished.path)) trainer.load(unfinished.path);
  done(trainer.steps());
  auto since = std::chrono::steady_clock::now();
  const bool ended = trainer.run(
      [&] {
        const Questions questions = task.sample(s.batch, sequences);
        auto state = model.make_state(s.batch, trainer.steps() * s.batch);
        model.observe(state, s.batch, questions.tokens, s.segment);
        made = model.objective(state, questions.last, {.kl_weight = s.kl_weight});
        return made.total;
      },
      {.save = [&] { trainer.save(unfinished.path); },
       .stop = [] { return support::InterruptGuard::signal() != 0; },
       .stepped =
           [&](const infty::TrainStep&, const infty::Progress& progress) {
             if (progress.done() > s.steps - counted)
               behind.loss +=
                   static_cast<double>(made.loss.value().item()) / static_cast<double>(counted);
             const auto now = std::chrono::steady_clock::now();
             behind.seconds += std::chrono::duration<double>(now - since).count();
             since = now;
             done(1);
           }});
  if (!ended) throw support::Interrupted(support::InterruptGuard::signal(), "stopped");
  return behind;
}

/// Trains and evaluates. A run whose loss is no number at some step has no answer right.
template <class Done>
Cell run(const Settings& s, const Task& task, const std::string& memory, double rate,
         std::uint64_t seed, const Unfinished& unfinished, Done&& done) {
  auto start = std::chrono::steady_clock::now();
  const auto config = fitted(s, task, memory, seed);
  const auto model = support::make_model(config);
  Cell cell{.task = task.name,
            .memory = memory,
            .rate = rate,
            .seed = seed,
            .parameters = model->parameters(),
            .bytes = full_bytes(s, config)};
  try {
    const Behind behind = train(*model, s, task, rate, seed, unfinished, done);
    cell.loss = behind.loss;
    cell.seconds = behind.seconds;
    start = std::chrono::steady_clock::now();
    cell.validation = evaluate(*model, s, task, 2);
    cell.accuracy = evaluate(*model, s, task, 3);
  } catch (const infty::NonFiniteError&) {
    cell.loss = -1;
  }
  cell.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return cell;
}

}  // namespace recall
