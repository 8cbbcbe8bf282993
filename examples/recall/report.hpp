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

/// What contracts otherwise than the papers, with the best tau, its rival.
inline std::vector<std::pair<std::string, std::string>> rivals_of(
    const std::vector<std::string>& memories) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& memory : memories) {
    const std::string& rival = swept[support::is_sticky(memory) ? 1 : 0];
    if (support::names_contraction(memory) &&
        std::find(memories.begin(), memories.end(), rival) != memories.end())
      pairs.emplace_back(memory, rival);
  }
  return pairs;
}

/// The memory that is no ∞-former's and was best in a task on the sequences for choosing; empty
/// where none of them has been tried.
inline std::string best_other(const Settings& s, const std::string& task, const Results& results,
                              const std::vector<std::string>& memories) {
  std::string best;
  double most = 0;
  for (const std::string& memory : memories) {
    if (memory == "none" || support::is_infty(memory)) continue;
    const Try tried = results.best(s, task, memory);
    const Cell* const cell =
        results.find({task, tried.memory, s.bytes, tried.rate, s.seeds.front()});
    if (!cell || (!best.empty() && cell->validation <= most)) continue;
    best = memory;
    most = cell->validation;
  }
  return best;
}

/// Which memories are compared in a task: by the rule of support/comparison.hpp each with none, and
/// with the Transformer-XL; what has a rival with that, and with the best that is no ∞-former's.
inline std::vector<std::pair<std::string, std::string>> pairs_of(
    const std::vector<std::string>& memories, const std::string& other) {
  auto pairs = support::fixed_pairs(memories);
  for (const auto& [memory, rival] : rivals_of(memories)) {
    pairs.emplace_back(memory, rival);
    const std::pair with_other{memory, other};
    if (!other.empty() && std::find(pairs.begin(), pairs.end(), with_other) == pairs.end())
      pairs.push_back(with_other);
  }
  return pairs;
}

/// The memories of which there can be a verdict: neither the control nor what is left out for its
/// size.
inline std::vector<std::string> judged(const Settings& s, const std::vector<Task>& tasks,
                                       const Sizes& sizes) {
  std::vector<std::string> memories;
  for (const std::string& memory : s.memories)
    if (!reads_in_one(memory) && std::ranges::all_of(tasks, [&](const Task& task) {
          return sizes.contains({task.heads, memory, s.bytes});
        }))
      memories.push_back(memory);
  return memories;
}

/// Whether all runs of a word are done in a task.
inline bool all_done(const Settings& s, const Results& results, const std::string& task,
                     const std::string& word) {
  return results.all_tried(s, task, word) &&
         results.seeds(s, task, word, s.bytes).size() == s.seeds.size();
}

/// What is compared, in each task.
inline std::string fixed_comparisons(const Settings& s, const std::vector<Task>& tasks,
                                     const Sizes& sizes, const Results& results) {
  std::vector<support::Comparison> comparisons;
  const auto memories = judged(s, tasks, sizes);
  for (const Task& task : tasks)
    for (const auto& [memory, reference] :
         pairs_of(memories, best_other(s, task.name, results, memories))) {
      if (!all_done(s, results, task.name, memory) || !all_done(s, results, task.name, reference))
        return support::no_verdicts;
      const auto of = [&](const std::string& word) {
        return accuracies(results.seeds(s, task.name, word, s.bytes));
      };
      comparisons.push_back({task.name, memory, reference, of(memory), of(reference)});
    }
  return support::verdicts(comparisons, false);
}

/// What each of a memory's runs knows at a distance or length. One whose loss was no number has no
/// answer right of as many questions as the others, or those of other memories, are asked; 0 of
/// none if there are no others. Empty at a distance that is never asked of this memory.
inline std::vector<DistancePoint> points_at(const Settings& s, const Task& task,
                                            const std::string& memory, const Results& results,
                                            Index distance) {
  const auto point_of = [&](const Cell* cell) -> const DistancePoint* {
    for (const DistancePoint& point : cell->distances)
      if (point.distance == distance) return &point;
    return nullptr;
  };
  const auto asked_of = [&](const std::string& word) {
    Index asked = 0;
    for (const Cell* const cell : results.seeds(s, task.name, word, s.bytes))
      if (const DistancePoint* const point = point_of(cell)) asked = std::max(asked, point->asked);
    return asked;
  };
  Index asked = asked_of(memory);
  if (asked == 0 && reads_in_one(memory)) return {};
  for (const std::string& other : s.memories)
    if (asked == 0) asked = asked_of(other);
  std::vector<DistancePoint> all;
  for (const Cell* const cell : results.seeds(s, task.name, memory, s.bytes)) {
    const DistancePoint* const point = point_of(cell);
    all.push_back(point ? *point : DistancePoint{.distance = distance, .right = 0, .asked = asked});
  }
  return all;
}

/// Accuracy of each run at a distance or length.
inline std::vector<double> accuracies_at(const Settings& s, const Task& task,
                                         const std::string& memory, const Results& results,
                                         Index distance) {
  std::vector<double> all;
  for (const DistancePoint& point : points_at(s, task, memory, results, distance))
    all.push_back(
        point.right > 0 ? static_cast<double>(point.right) / static_cast<double>(point.asked) : 0);
  return all;
}

/// What is compared beyond the training, in a table whose intervals hold together: at each distance
/// what contracts otherwise than the papers with its rival, by the rate and the tau that were
/// chosen at the trained length; and these and their rivals with themselves at the shortest
/// distance, which says whether they fall. Empty if there are none, or runs of them are missing.
inline std::string far_comparisons(const Settings& s, const std::vector<Task>& tasks,
                                   const Sizes& sizes, const Results& results) {
  const auto rivals = rivals_of(judged(s, tasks, sizes));
  std::vector<std::string> words;
  for (const auto& [memory, rival] : rivals)
    for (const std::string& word : {rival, memory})
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  std::vector<support::Comparison> comparisons;
  for (const Task& task : tasks) {
    if (task.distances.empty()) continue;
    for (const std::string& word : words)
      if (!all_done(s, results, task.name, word)) return "";
    const auto at = [&](const std::string& word, Index distance) {
      return accuracies_at(s, task, word, results, distance);
    };
    for (const Index distance : task.distances)
      for (const auto& [memory, rival] : rivals)
        comparisons.push_back({task.name + ", at " + std::to_string(distance), memory, rival,
                               at(memory, distance), at(rival, distance)});
    const Index least = *std::ranges::min_element(task.distances);
    for (const std::string& word : words)
      for (const Index distance : task.distances)
        if (distance != least)
          comparisons.push_back({task.name, word + " at " + std::to_string(distance),
                                 word + " at " + std::to_string(least), at(word, distance),
                                 at(word, least)});
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
      if (results.seeds(s, task.name, memory, s.bytes).empty()) continue;
      out += "\n| " + (reads_in_one(memory) ? "(the whole sequence)" : memory) + " |";
      for (const Index distance : task.distances) {
        const auto all = accuracies_at(s, task, memory, results, distance);
        out += ' ' + (all.empty() ? "-" : support::mean_and_spread(all)) + " |";
      }
    }
    out += '\n';
  }
  return out;
}

/// A table in Markdown: a row a memory, a column a task; accuracy, mean and standard deviation over
/// the seeds, of what was best of all that was tried for this memory and task. Behind it, how far
/// what was learned reaches, and the fixed comparisons, of the table and of how far.
inline std::string table(const Settings& s, const std::vector<Task>& tasks, const Sizes& sizes,
                         const Results& results) {
  std::string out = "| memory | bytes a row | with what is kept | parameters |";
  for (const Task& task : tasks) out += ' ' + task.name + " |";
  out += "\n|---|---|---|---|";
  for (std::size_t i = 0; i < tasks.size(); ++i) out += "---|";
  out += "\n| (guessing) | | | |";
  for (const Task& task : tasks) out += ' ' + support::mean_and_spread({task.chance}) + " |";
  for (const std::string& memory : s.memories) {
    const Size* const size = size_in_table(s, tasks, sizes, memory);
    if (!size) continue;
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
           (whole ? "" : std::to_string(size->bytes)) + " | " + (whole ? "" : number(size->held)) +
           " | " + number(parameters) + " |" + row;
  }
  return out + '\n' + far_tables(s, tasks, results) + fixed_comparisons(s, tasks, sizes, results) +
         far_comparisons(s, tasks, sizes, results);
}

}  // namespace recall
