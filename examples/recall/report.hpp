// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <locale>
#include <sstream>
#include <string>
#include <vector>

#include "../support/comparison.hpp"
#include "plan.hpp"

namespace recall {

/// Mean and standard deviation, the latter of at least two.
struct Spread {
  double mean = 0, deviation = 0;
};

inline Spread spread_of(const std::vector<double>& all) {
  const auto count = static_cast<double>(all.size());
  Spread out;
  double square = 0;
  for (const double x : all) out.mean += x / count;
  for (const double x : all) square += (x - out.mean) * (x - out.mean);
  if (all.size() > 1) out.deviation = std::sqrt(square / (count - 1));
  return out;
}

/// `0.123 ± 0.045`
inline std::string mean_and_spread(const std::vector<double>& all) {
  const Spread spread = spread_of(all);
  char text[64];
  if (all.size() < 2)
    std::snprintf(text, sizeof text, "%.3f", spread.mean);
  else
    std::snprintf(text, sizeof text, "%.3f ± %.3f", spread.mean, spread.deviation);
  return text;
}

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
        return "\nRuns are missing: before they are done there is no verdict.\n";
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
  for (const Task& task : tasks) out += ' ' + mean_and_spread({task.chance}) + " |";
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
      row += cells.empty() ? " - |" : ' ' + mean_and_spread(accuracies(cells)) + rate + " |";
      if (!cells.empty() && parameters == 0) parameters = cells.front()->parameters;
    }
    const bool whole = reads_in_one(memory);
    out += "\n| " + (whole ? "(the whole sequence)" : memory) + " | " +
           (whole ? "" : std::to_string(size->second.bytes)) + " | " +
           (whole ? "" : number(size->second.held)) + " | " + number(parameters) + " |" + row;
  }
  return out + '\n' + fixed_comparisons(s, tasks, sizes, results);
}

/// Fields with commas between them, numbers by the shortest digits that are read as the same.
class Csv {
 public:
  explicit Csv(const char* header) : text_(header) {}

  template <class... Fields>
  void row(const Fields&... fields) {
    const char* before = "\n";
    const auto add = [&](const auto& field) {
      text_ += before;
      if constexpr (requires { text_ + field; })
        text_ += field;
      else
        text_ += nlohmann::json(field).dump();
      before = ",";
    };
    (add(fields), ...);
  }

  std::string text() const { return text_ + '\n'; }

 private:
  std::string text_;
};

/// All runs that are done, a line each.
inline std::string runs_csv(const Results& results) {
  Csv csv(
      "task,memory,bytes,rate,seed,parameters,state_bytes,held_bytes,loss,validation,accuracy,"
      "seconds");
  for (const auto& [name, c] : results.cells())
    csv.row(c.run.task, c.run.memory, c.run.bytes, c.run.rate, c.run.seed, c.parameters, c.bytes,
            c.held, c.loss, c.validation, c.accuracy, c.seconds);
  return csv.text();
}

}  // namespace recall
