// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "../support/comparison.hpp"
#include "plan.hpp"

namespace recall {

inline std::vector<double> accuracies(const std::vector<const Cell*>& cells) {
  std::vector<double> all;
  for (const Cell* const cell : cells) all.push_back(cell->accuracy);
  return all;
}

/// Which memories are compared: by the rule of support/comparison.hpp each with none, and with the
/// Transformer-XL; and what contracts otherwise than the papers with the best tau.
inline std::vector<std::pair<std::string, std::string>> pairs_of(
    const std::vector<std::string>& memories) {
  auto pairs = support::fixed_pairs(memories);
  for (const std::string& memory : memories) {
    const std::string& rival = swept[support::is_sticky(memory) ? 1 : 0];
    if (support::names_contraction(memory) &&
        std::find(memories.begin(), memories.end(), rival) != memories.end())
      pairs.emplace_back(memory, rival);
  }
  return pairs;
}

/// What is compared, in each task. The control and what is left out for its size are compared with
/// nothing.
inline std::string fixed_comparisons(const Settings& s, const std::vector<Task>& tasks,
                                     const Sizes& sizes, const Results& results) {
  std::vector<std::string> memories;
  for (const std::string& memory : s.memories)
    if (!reads_in_one(memory) && sizes.contains({memory, s.bytes})) memories.push_back(memory);
  std::vector<support::Comparison> comparisons;
  for (const Task& task : tasks)
    for (const auto& [memory, reference] : pairs_of(memories)) {
      const auto of = [&](const std::string& word) {
        return accuracies(results.seeds(s, task.name, word, s.bytes));
      };
      comparisons.push_back({task.name, memory, reference, of(memory), of(reference)});
      const std::size_t seeds = s.seeds.size();
      if (comparisons.back().of_memory.size() != seeds ||
          comparisons.back().of_reference.size() != seeds ||
          !results.all_tried(s, task.name, memory) || !results.all_tried(s, task.name, reference))
        return support::no_verdicts;
    }
  return support::verdicts(comparisons, false);
}

/// Of each task whose training is tested further, a table in Markdown: a row a memory, a column a
/// distance or length; mean and standard deviation over the seeds.
inline std::string far_tables(const Settings& s, const std::vector<Task>& tasks,
                              const Results& results) {
  std::string out;
  for (const Task& task : tasks) {
    if (task.distances.empty()) continue;
    out += "\n| " + task.name + ", at |";
    std::string rule = "\n|---|";
    for (const Index distance : task.distances) {
      out += ' ' + std::to_string(distance) + " |";
      rule += "---|";
    }
    out += rule;
    for (const std::string& memory : s.memories) {
      const auto cells = results.seeds(s, task.name, memory, s.bytes);
      if (cells.empty()) continue;
      out += "\n| " + (reads_in_one(memory) ? "(the whole sequence)" : memory) + " |";
      for (const Index distance : task.distances) {
        std::vector<double> all;
        for (const Cell* const cell : cells)
          for (const DistancePoint& point : cell->distances)
            if (point.distance == distance)
              all.push_back(static_cast<double>(point.right) / static_cast<double>(point.asked));
        out += ' ' + (all.empty() ? "-" : support::mean_and_spread(all)) + " |";
      }
    }
    out += '\n';
  }
  return out;
}

/// A table in Markdown: a row a memory, a column a task; accuracy, mean and standard deviation over
/// the seeds, of what was best of all that was tried for this memory and task. Behind it, how far
/// what was learned reaches, and the fixed comparisons.
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
      const Try best = results.best(s, task.name, memory);
      char chosen[64];
      if (is_swept(memory))
        std::snprintf(chosen, sizeof chosen, " (%g, tau %g)", best.rate, tau_of(s, best.memory));
      else
        std::snprintf(chosen, sizeof chosen, " (%g)", best.rate);
      row += cells.empty() ? " - |"
                           : ' ' + support::mean_and_spread(accuracies(cells)) + chosen + " |";
      if (!cells.empty() && parameters == 0) parameters = cells.front()->parameters;
    }
    const bool whole = reads_in_one(memory);
    out += "\n| " + (whole ? "(the whole sequence)" : memory) + " | " +
           (whole ? "" : std::to_string(size->second.bytes)) + " | " +
           (whole ? "" : number(size->second.held)) + " | " + number(parameters) + " |" + row;
  }
  return out + '\n' + far_tables(s, tasks, results) + fixed_comparisons(s, tasks, sizes, results);
}

}  // namespace recall
