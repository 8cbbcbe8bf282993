// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <infty/data/associative_recall.hpp>
#include <infty/data/copy.hpp>
#include <infty/data/sorting.hpp>

#include "settings.hpp"

namespace recall {

/// Sequences that are read, and the last segment, which asks: its targets are known.
struct Questions {
  std::vector<Index> tokens;  ///< (batch, length)
  infty::TextBatch last;
};

/// A task with known answers.
struct Task {
  std::string name;
  Index vocabulary = 0, length = 0;
  double chance = 0;  ///< accuracy of whoever remembers nothing
  std::function<Questions(Index batch, infty::Random& random)> sample;
};

/// A last segment (batch, length) with its right answers.
inline infty::TextBatch asked(Index batch, const std::vector<std::int64_t>& inputs,
                              const std::vector<std::int64_t>& answer) {
  infty::TextBatch last;
  last.batch = batch;
  last.length = std::ssize(answer) / batch;
  last.inputs.assign(inputs.begin(), inputs.end());
  last.targets.assign(answer.begin(), answer.end());
  last.predicted = std::ssize(answer);
  return last;
}

/// One that says a separator and then the answer, each symbol behind the true ones before it.
inline infty::TextBatch dictated(Index batch, std::int64_t separator,
                                 const std::vector<std::int64_t>& answer) {
  const std::size_t length = answer.size() / static_cast<std::size_t>(batch);
  std::vector<std::int64_t> inputs(answer.size(), separator);
  for (std::size_t i = 1; i < answer.size(); ++i)
    if (i % length != 0) inputs[i] = answer[i - 1];
  return asked(batch, inputs, answer);
}

inline Task copy_task(const Settings& s) {
  const infty::CopyTask task({.symbols = s.symbols, .items = s.items, .gap = s.copy_gap});
  return {"copy " + std::to_string(s.copy_gap), task.vocabulary(), task.length(),
          1 / static_cast<double>(s.symbols), [task](Index batch, infty::Random& random) {
            const auto drawn = task.sample(batch, random);
            return Questions{{drawn.tokens.begin(), drawn.tokens.end()},
                             dictated(batch, task.separator(), drawn.answer)};
          }};
}

inline Task recall_task(const Settings& s) {
  const infty::AssociativeRecallTask task(
      {.keys = s.keys, .values = s.values, .pairs = s.pairs, .gap = s.recall_gap});
  return {"recall " + std::to_string(s.recall_gap), task.vocabulary(), task.length(),
          1 / static_cast<double>(s.values), [task](Index batch, infty::Random& random) {
            const auto drawn = task.sample(batch, random);
            return Questions{{drawn.tokens.begin(), drawn.tokens.end()},
                             asked(batch, drawn.questions, drawn.answer)};
          }};
}

inline Task sorting_task(const Settings& s, Index length) {
  const infty::SortingTask task({.symbols = s.symbols, .length = length});
  return {"sorting " + std::to_string(length), task.vocabulary(), length,
          infty::chance_accuracy(s.symbols, true), [task](Index batch, infty::Random& random) {
            const auto drawn = task.sample(batch, random);
            return Questions{{drawn.tokens.begin(), drawn.tokens.end()},
                             dictated(batch, task.separator(), drawn.answer)};
          }};
}

/// The tasks of the settings. Throws infty::ValueError for sizes that cannot be.
inline std::vector<Task> tasks_of(const Settings& s) {
  std::vector<Task> tasks;
  for (const std::string& name : s.tasks) {
    if (name == "copy") tasks.push_back(copy_task(s));
    if (name == "recall") tasks.push_back(recall_task(s));
    if (name == "sorting")
      for (const Index length : s.lengths) tasks.push_back(sorting_task(s, length));
  }
  return tasks;
}

}  // namespace recall
