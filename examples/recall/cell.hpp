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
#include "../support/model_need.hpp"
#include "../support/training.hpp"
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

/// What is made of a memory's model before it is fitted to the bytes of `vectors` vectors.
inline support::ModelConfig config_of(const Settings& s, Index vocabulary,
                                      const std::string& memory, std::uint64_t seed) {
  support::ModelConfig config{.memory = memory,
                              .seed = seed,
                              .transformer = s.model,
                              .memory_length = s.vectors,
                              .compression_rate = s.compression_rate,
                              .segment = 1,
                              .long_term = s.long_term};
  config.transformer.vocabulary = vocabulary;
  return config;
}

/// A model's state for one row, when its memories are full.
inline std::size_t full_bytes(const Settings& s, const support::ModelConfig& config) {
  const auto model = support::make_model(config);
  auto state = model->make_state(1);
  // What is compressed takes several vectors; a memory behind another waits for a segment.
  const Index segments = 2 + (config.memory_length * config.compression_rate) / s.segment;
  const std::vector<Index> tokens(static_cast<std::size_t>(segments * s.segment), 0);
  model->observe(state, 1, tokens, s.segment);
  return model->bytes_of(state);
}

/// A model of a memory; with as long a one as fits into the bytes of `vectors` vectors a layer.
inline support::ModelConfig fitted(const Settings& s, const Task& task, const std::string& memory,
                                   std::uint64_t seed) {
  support::ModelConfig config = config_of(s, task.vocabulary, "xl", seed);
  const std::size_t allowed = full_bytes(s, config);
  config.memory = memory;
  if (memory == "xl" || memory == "none") return config;
  const auto widths = static_cast<Index>(s.long_term.widths.size());
  const auto fits = [&](Index length) {
    config.memory_length = length;
    // Of basis functions there are as many for each width.
    const auto part = static_cast<Index>(s.share * static_cast<double>(length));
    config.compressed = std::max<Index>(1, part / widths) * widths;
    return full_bytes(s, config) <= allowed;
  };
  Index low = 2 * widths, high = s.vectors * s.model.layers + 1;
  infty::require(fits(low), "recall", "--vectors is ", s.vectors, ": ", memory,
                 " needs more than their ", allowed, " bytes");
  while (high - low > 1) {
    const Index middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  fits(low);
  return config;
}

/// Throws infty::ValueError that names the option if a memory's model and what it reads and answers
/// in the tasks need more memory than there is; makes nothing of their sizes.
inline void check_memory(const Settings& settings, const std::string& memory) {
  const auto need = [&](const Settings& s) {
    const auto number = [](Index n) { return static_cast<double>(n); };
    const double rows = number(s.batch);
    // Of a task with so many different tokens, and sequences and answers so long.
    const auto bytes = [&](Index vocabulary, Index length, Index answer) {
      auto config = config_of(s, vocabulary, memory, 0);
      config.compressed = static_cast<Index>(s.share * number(s.vectors));
      const support::ModelNeed model(config);
      const double filled = number(s.vectors) * number(s.compression_rate) + 2 * number(s.segment);
      return model.model() + model.state(rows) +
             std::max(model.segment(rows, number(std::min(s.segment, length)), false),
                      model.segment(rows, number(answer), true)) +
             2 * sizeof(Index) * (filled + rows * number(length + answer) + number(vocabulary));
    };
    double most = 0;
    for (const std::string& task : s.tasks) {
      if (task == "copy")
        most = std::max(most, bytes(s.symbols + 2, s.items + s.copy_gap, s.items));
      else if (task == "recall")
        most = std::max(most, bytes(s.values + s.keys + 1, 2 * s.pairs + s.recall_gap, s.pairs));
      else
        for (const Index length : s.lengths)
          most = std::max(most, bytes(s.symbols + 1, length, s.symbols));
    }
    return most;
  };
  support::require_memory("recall", settings, need);
}

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
