// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../support/comparison.hpp"
#include "../support/finished_runs.hpp"
#include "cell.hpp"

namespace recall {

template <class See>
void each_field(Cell& cell, See&& see) {
  see("task", cell.task);
  see("memory", cell.memory);
  see("rate", cell.rate);
  see("seed", cell.seed);
  see("parameters", cell.parameters);
  see("bytes", cell.bytes);
  see("loss", cell.loss);
  see("validation", cell.validation);
  see("accuracy", cell.accuracy);
  see("seconds", cell.seconds);
}

/// The runs that are done.
class Results : public support::FinishedRuns<Cell> {
 public:
  explicit Results(std::filesystem::path path) : FinishedRuns("recall", std::move(path)) {}

  /// The run of these, or null.
  const Cell* find(const std::string& task, const std::string& memory, double rate,
                   std::uint64_t seed) const {
    return FinishedRuns::find(std::tie(task, memory, rate, seed));
  }

  /// The rate of all tried with a seed that had the best accuracy on the sequences for choosing.
  double best_rate(const Settings& s, const std::string& task, const std::string& memory) const {
    const Cell* best = nullptr;
    for (const double rate : s.rates) {
      const Cell* const cell = find(task, memory, rate, s.seeds.front());
      if (cell && (!best || cell->validation > best->validation)) best = cell;
    }
    return best ? best->rate : s.rates.front();
  }
};

/// The accuracies of a memory in a task, seed by seed, at the rate that was best for it there.
inline std::vector<double> accuracies(const Settings& s, const std::string& task,
                                      const std::string& memory, const Results& results) {
  std::vector<double> all;
  for (const std::uint64_t seed : s.seeds)
    if (const Cell* const cell =
            results.find(task, memory, results.best_rate(s, task, memory), seed))
      all.push_back(cell->accuracy);
  return all;
}

/// A table in Markdown: a row a memory, a column a task; accuracy, mean and standard deviation over
/// the seeds, at the rate that was best for this memory and task. Behind it, the fixed comparisons.
inline std::string table(const Settings& s, const std::vector<Task>& tasks,
                         const Results& results) {
  std::string out = "| memory | bytes a row |";
  for (const Task& task : tasks) out += ' ' + task.name + " |";
  out += "\n|---|---|";
  for (std::size_t i = 0; i < tasks.size(); ++i) out += "---|";
  out += "\n| (guessing) | |";
  for (const Task& task : tasks) out += ' ' + support::mean_and_spread({task.chance}) + " |";
  for (const std::string& memory : s.memories) {
    std::string row;
    std::size_t bytes = 0;
    for (const Task& task : tasks) {
      const double rate = results.best_rate(s, task.name, memory);
      const std::vector<double> accuracy = accuracies(s, task.name, memory, results);
      for (const std::uint64_t seed : s.seeds)
        if (const Cell* const cell = results.find(task.name, memory, rate, seed))
          bytes = std::max(bytes, cell->bytes);
      char at[32];
      std::snprintf(at, sizeof at, " (%g) |", rate);
      row += ' ' + (accuracy.empty() ? "-" : support::mean_and_spread(accuracy)) + at;
    }
    out += "\n| " + memory + " | " + std::to_string(bytes) + " |" + row;
  }
  std::vector<support::Comparison> comparisons;
  for (const Task& task : tasks)
    for (const auto& [memory, reference] : support::fixed_pairs(s.memories))
      comparisons.push_back({task.name, memory, reference,
                             accuracies(s, task.name, memory, results),
                             accuracies(s, task.name, reference, results)});
  return out + '\n' + support::verdicts(comparisons, false);
}

}  // namespace recall
