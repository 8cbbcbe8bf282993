// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <infty/data/associative_recall.hpp>
#include <infty/data/copy.hpp>
#include <infty/data/sorting.hpp>

#include "mqar.hpp"
#include "needle.hpp"
#include "settings.hpp"
#include "task.hpp"

namespace recall {

/// A task that is trained on fresh sequences, as the settings say.
inline Task fresh_task(
    const Settings& s, std::string name, Index vocabulary, Index length, double chance,
    std::function<support::Questions(Index batch, infty::Random& random)> sample) {
  return {.name = std::move(name),
          .vocabulary = vocabulary,
          .length = length,
          .chance = chance,
          .training = {{.sample = std::move(sample)}},
          .trainer = {.steps = s.steps, .warmup_steps = s.warmup, .max_norm = s.clip},
          .batch = s.batch};
}

inline Task copy_task(const Settings& s) {
  const infty::CopyTask task({.symbols = s.symbols, .items = s.items, .gap = s.copy_gap});
  return fresh_task(s, "copy " + std::to_string(s.copy_gap), task.vocabulary(), task.length(),
                    1 / static_cast<double>(s.symbols), [task](Index batch, infty::Random& random) {
                      const auto drawn = task.sample(batch, random);
                      return support::Questions{
                          {drawn.tokens.begin(), drawn.tokens.end()},
                          support::dictated(batch, task.separator(), drawn.answer)};
                    });
}

inline Task recall_task(const Settings& s) {
  const infty::AssociativeRecallTask task(
      {.keys = s.keys, .values = s.values, .pairs = s.pairs, .gap = s.recall_gap});
  return fresh_task(s, "recall " + std::to_string(s.recall_gap), task.vocabulary(), task.length(),
                    1 / static_cast<double>(s.values), [task](Index batch, infty::Random& random) {
                      const auto drawn = task.sample(batch, random);
                      return support::Questions{
                          {drawn.tokens.begin(), drawn.tokens.end()},
                          support::asked(batch, drawn.questions, drawn.answer)};
                    });
}

/// Right answers to sequences of the lengths that are tested on only, of others than `evaluate`
/// has. From where a state is no longer finite nothing is right. Throws support::Interrupted where
/// a signal came.
inline std::vector<DistancePoint> sorted_at(const support::Model& model, const Settings& s,
                                            const std::string& memory, const Told& told) {
  std::vector<DistancePoint> points;
  for (const Index length : s.test_lengths) {
    if (reads_in_one(memory) && length > furthest_in_one) continue;
    const infty::SortingTask task({.symbols = s.symbols, .length = length});
    DistancePoint& point = points.emplace_back(length, 0, s.test_sequences * s.symbols);
    infty::Random random(0, 5);
    for (Index first = 0; first < s.test_sequences; first += s.batch) {
      support::stop_if_interrupted();
      const Index rows = std::min(s.batch, s.test_sequences - first);
      support::Questions questions = support::sample(task, rows, random);
      if (reads_in_one(memory)) questions = in_one(questions);
      auto state = model.make_state(rows, first);
      support::Marks marks;
      try {
        marks.add(model, state, questions, s.segment);
      } catch (const infty::NonFiniteError&) {
        continue;
      }
      point.right += marks.rows.at(s.symbols).first;
      told(rows * length);
    }
  }
  return points;
}

inline Task sorting_task(const Settings& s, Index length) {
  const infty::SortingTask task({.symbols = s.symbols, .length = length});
  Task out = fresh_task(
      s, "sorting " + std::to_string(length), task.vocabulary(), length,
      infty::chance_accuracy(s.symbols, true),
      [task](Index batch, infty::Random& random) { return support::sample(task, batch, random); });
  out.distances = s.test_lengths;
  out.far = [s](const support::Model& model, const std::string& memory, const Told& told) {
    return sorted_at(model, s, memory, told);
  };
  for (const Index tested : s.test_lengths) out.far_tokens += s.test_sequences * tested;
  return out;
}

/// The tasks of the settings. Throws infty::ValueError for sizes that cannot be.
inline std::vector<Task> tasks_of(const Settings& s) {
  std::vector<Task> tasks;
  for (const std::string& name : s.tasks) {
    const std::size_t before = tasks.size();
    if (name == "copy") tasks.push_back(copy_task(s));
    if (name == "recall") tasks.push_back(recall_task(s));
    if (name == "sorting")
      for (const Index length : s.lengths) tasks.push_back(sorting_task(s, length));
    if (name == "mqar")
      for (const Index length : s.mqar_lengths) tasks.push_back(mqar_task(s, length));
    if (name == "mqar-mix") tasks.push_back(mqar_mix_task(s));
    if (name == "needle") tasks.push_back(needle_task(s));
    for (std::size_t i = before; i < tasks.size(); ++i) tasks[i].heads = heads_of(s, name);
  }
  return tasks;
}

}  // namespace recall
