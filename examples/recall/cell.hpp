// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "../support/answering.hpp"
#include "../support/training.hpp"
#include "run.hpp"
#include "sizes.hpp"
#include "tasks.hpp"

namespace recall {

/// Where the training of a run is saved until it is finished, and when.
struct Unfinished {
  std::filesystem::path path;
  support::Saving saving = {};
};

/// How the model of a run learns.
inline support::Training training_of(const Run& run, const Settings& s, const Task& task,
                                     const Unfinished& unfinished = {}) {
  support::Training training{.trainer = task.trainer,
                             .batch = task.batch,
                             .segment = s.segment,
                             .objective = {.kl_weight = s.kl_weight},
                             .unfinished = unfinished.path,
                             .epoch = epoch_of(task),
                             .enough = task.enough};
  if (support::has_product_keys(run.memory)) training.values_rate = s.values_rate;
  training.trainer.adam.learning_rate = run.rate;
  training.trainer.save_every = unfinished.saving.every;
  training.trainer.save_minutes = unfinished.saving.minutes;
  return training;
}

/// The accuracy on sequences from a stream of random numbers of their own.
inline double evaluate(const support::Model& model, const support::Training& training,
                       const Settings& s, const Task& task, const std::string& memory,
                       std::uint64_t stream) {
  support::Marks marks;
  infty::Random random(0, stream);
  for (const Source& source : task.tests.empty() ? task.training : task.tests)
    examine(model, training, source.examples > 0 ? source.examples : s.evaluation_sequences, random,
            marks, [&](Index rows, infty::Random& draws) {
              support::Questions questions = source.sample(rows, draws);
              return reads_in_one(memory) ? in_one(questions) : questions;
            });
  return marks.accuracy();
}

/// Trains the model of a run, as support::train.
template <class Done>
support::Behind train(support::Model& model, const support::Training& training, const Run& run,
                      const Settings& s, const Task& task, Done&& done) {
  return support::train(
      model, training,
      [&](Index step) {
        const Lesson lesson = lesson_of(task, step);
        infty::Random sequences(run.seed, 1);
        const bool fresh = lesson.source->examples == 0;
        sequences.seek(static_cast<std::uint64_t>(fresh ? step * task.batch : lesson.first));
        support::Questions questions = lesson.source->sample(lesson.rows, sequences);
        return reads_in_one(run.memory) ? in_one(questions) : questions;
      },
      [&] { return evaluate(model, training, s, task, run.memory, 2); }, done);
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
  double start = support::computed();
  const auto model = model_of(size, task, run.seed);
  Cell cell{.run = run, .parameters = model->parameters(), .bytes = size.bytes, .held = size.held};
  try {
    const support::Training training = training_of(run, s, task, unfinished);
    const support::Behind behind = train(*model, training, run, s, task, done);
    cell.loss = behind.loss;
    cell.seconds = behind.seconds;
    start = support::computed();
    cell.validation = evaluate(*model, training, s, task, run.memory, 2);
    cell.accuracy = evaluate(*model, training, s, task, run.memory, 3);
    // What is read is told as the steps that would have taken as long.
    double steps = 0;
    if (!task.distances.empty())
      cell.distances = task.far(*model, run.memory, [&](Index tokens) {
        steps += static_cast<double>(tokens) * cost_of_token(task);
        const auto whole = static_cast<Index>(steps);
        steps -= static_cast<double>(whole);
        if (whole > 0) done(whole);
      });
  } catch (const infty::NonFiniteError&) {
    cell.loss = -1;
  }
  cell.seconds += support::computed() - start;
  return cell;
}

}  // namespace recall
