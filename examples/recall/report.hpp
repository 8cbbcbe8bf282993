// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "../support/comparison.hpp"
#include "plan.hpp"

namespace recall {

inline std::vector<double> accuracies(const std::vector<const Cell*>& cells) {
  std::vector<double> all;
  for (const Cell* const cell : cells) all.push_back(cell->accuracy);
  return all;
}

/// What is compared by the rule of support/comparison.hpp: in each task each memory with none, and
/// with the Transformer-XL. The control and what is left out for its size are compared with
/// nothing.
inline std::string fixed_comparisons(const Settings& s, const std::vector<Task>& tasks,
                                     const Sizes& sizes, const Results& results) {
  std::vector<std::string> memories;
  for (const std::string& memory : s.memories)
    if (!reads_in_one(memory) && sizes.contains({memory, s.bytes})) memories.push_back(memory);
  std::vector<support::Comparison> comparisons;
  for (const Task& task : tasks)
    for (const auto& [memory, reference] : support::fixed_pairs(memories)) {
      const auto of = [&](const std::string& word) {
        return accuracies(results.seeds(s, task.name, word, s.bytes));
      };
      comparisons.push_back({task.name, memory, reference, of(memory), of(reference)});
      const std::size_t seeds = s.seeds.size();
      if (comparisons.back().of_memory.size() != seeds ||
          comparisons.back().of_reference.size() != seeds ||
          !results.all_rates(s, task.name, memory) || !results.all_rates(s, task.name, reference))
        return support::no_verdicts;
    }
  return support::verdicts(comparisons, false);
}

/// A table in Markdown: a row a memory, a column a task; accuracy, mean and standard deviation over
/// the seeds, at the rate that was best for this memory and task. Behind it, the fixed comparisons.
inline std::string table(const Settings& s, const std::vector<Task>& tasks, const Sizes& sizes,
                         const Results& results) {
  std::string out = "| memory | bytes a row | with what is kept | parameters |";
  for (const Task& task : tasks) out += ' ' + task.name + " |";
  out += "\n|---|---|---|---|";
  for (std::size_t i = 0; i < tasks.size(); ++i) out += "---|";
  out += "\n| (guessing) | | | |";
  for (const Task& task : tasks) out += ' ' + support::mean_and_spread({task.chance}) + " |";
  for (const std::string& memory : s.memories) {
    const auto size = sizes.find({memory, s.bytes});
    if (size == sizes.end()) continue;
    const auto number = [](auto n) { return n > 0 ? std::to_string(n) : std::string("-"); };
    Index parameters = 0;
    std::string row;
    for (const Task& task : tasks) {
      const auto cells = results.seeds(s, task.name, memory, s.bytes);
      char rate[32];
      std::snprintf(rate, sizeof rate, " (%g)", results.best_rate(s, task.name, memory));
      row +=
          cells.empty() ? " - |" : ' ' + support::mean_and_spread(accuracies(cells)) + rate + " |";
      if (!cells.empty() && parameters == 0) parameters = cells.front()->parameters;
    }
    const bool whole = reads_in_one(memory);
    out += "\n| " + (whole ? "(the whole sequence)" : memory) + " | " +
           (whole ? "" : std::to_string(size->second.bytes)) + " | " +
           (whole ? "" : number(size->second.held)) + " | " + number(parameters) + " |" + row;
  }
  return out + '\n' + fixed_comparisons(s, tasks, sizes, results);
}

}  // namespace recall
