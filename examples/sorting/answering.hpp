// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <infty/data/sorting.hpp>
#include <infty/train/trainer.hpp>

#include "../support/interrupt.hpp"
#include "../support/json.hpp"
#include "../support/model.hpp"

// Models that are chosen when the program runs: how they learn to sort, and how often they are
// right.

namespace sorting {

using infty::Index;

/// Sequences that are read, and the last segment, which asks for their symbols in order: a
/// separator, then each symbol behind the true ones before it.
struct Questions {
  std::vector<Index> tokens;  ///< (batch, length)
  infty::TextBatch last;
};

inline Questions sample(const infty::SortingTask& task, Index batch, infty::Random& random) {
  const auto drawn = task.sample(batch, random);
  Questions out{{drawn.tokens.begin(), drawn.tokens.end()}, {}};
  out.last.batch = batch;
  out.last.length = task.config().symbols;
  out.last.predicted = std::ssize(drawn.answer);
  out.last.targets.assign(drawn.answer.begin(), drawn.answer.end());
  for (Index i = 0; i < out.last.predicted; ++i)
    out.last.inputs.push_back(i % out.last.length == 0
                                  ? task.separator()
                                  : drawn.answer[static_cast<std::size_t>(i - 1)]);
  return out;
}

/// How a model learns to sort.
struct Lesson {
  infty::SortingTask task;
  infty::TrainerConfig trainer;
  Index batch = 1, segment = 1;             ///< sequences a step, and tokens that are read at once
  support::ObjectiveConfig objective = {};  ///< but for `dropout`
  bool dropout = false;                     ///< whether the model has any
  std::uint64_t seed = 1;                   ///< of the sequences, and of what is dropped
  std::filesystem::path unfinished;         ///< the training's checkpoint until it is finished
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
Behind train(support::Model& model, const Lesson& lesson, Done&& done) {
  infty::Trainer trainer(model.named_parameters(), lesson.trainer);
  infty::Random sequences(lesson.seed, 1), dropout(lesson.seed, 3);
  const Index steps = lesson.trainer.steps, counted = std::max<Index>(1, steps / 10);
  support::ObjectiveConfig objective = lesson.objective;
  infty::Objective<float> made;
  Behind behind;
  trainer.keep("sequences", sequences)
      .keep_text(
          "behind", [&] { return support::json_of(behind).dump(); },
          [&](const std::string& text) {
            const auto there =
                support::parse<Behind>(text, lesson.unfinished.string() + ": behind");
            return [&behind, there] { behind = there; };
          });
  if (lesson.dropout) {
    trainer.keep("dropout", dropout);
    objective.dropout = &dropout;
  }
  if (std::filesystem::exists(lesson.unfinished)) trainer.load(lesson.unfinished);
  done(trainer.steps());
  auto since = std::chrono::steady_clock::now();
  const bool ended = trainer.run(
      [&] {
        const Questions questions = sample(lesson.task, lesson.batch, sequences);
        auto state = model.make_state(lesson.batch, trainer.steps() * lesson.batch);
        model.observe(state, lesson.batch, questions.tokens, lesson.segment);
        made = model.objective(state, questions.last, objective);
        return made.total;
      },
      {.save = [&] { trainer.save(lesson.unfinished); },
       .stop = [] { return support::InterruptGuard::signal() != 0; },
       .stepped =
           [&](const infty::TrainStep&, const infty::Progress& progress) {
             if (progress.done() > steps - counted)
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

/// The share of a model's answers that are right, on so many sequences from a stream of random
/// numbers of their own.
inline double share_right(const support::Model& model, const Lesson& lesson, Index sequences,
                          std::uint64_t stream) {
  infty::Random random(0, stream);
  Index right = 0, answers = 0;
  for (Index first = 0; first < sequences; first += lesson.batch) {
    const Index rows = std::min(lesson.batch, sequences - first);
    const Questions questions = sample(lesson.task, rows, random);
    auto state = model.make_state(rows, first);
    model.observe(state, rows, questions.tokens, lesson.segment);
    const auto answer = model.likeliest(state, questions.last);
    for (std::size_t i = 0; i < answer.size(); ++i)
      right += answer[i] == questions.last.targets[i] ? 1 : 0;
    answers += std::ssize(answer);
  }
  return static_cast<double>(right) / static_cast<double>(answers);
}

}  // namespace sorting
