// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../support/progress_line.hpp"
#include "results.hpp"

namespace recall {

/// Whether the figure of accuracy against bytes has a part for a task.
inline bool in_curves(const Settings& s, const Task& task) {
  std::string word = task.name.substr(0, task.name.find_last_not_of(" 0123456789") + 1);
  std::replace(word.begin(), word.end(), ' ', '-');
  return std::find(s.curve_tasks.begin(), s.curve_tasks.end(), word) != s.curve_tasks.end();
}

/// The sizes that states may have: that of the table, and those of the figure, rising.
inline std::vector<Index> budgets(const Settings& s, const std::vector<Task>& tasks) {
  std::set<Index> all{s.bytes};
  if (std::any_of(tasks.begin(), tasks.end(), [&](const Task& t) { return in_curves(s, t); }))
    all.insert(s.curve_bytes.begin(), s.curve_bytes.end());
  return {all.begin(), all.end()};
}

/// The size of a memory of so many bytes whose model has so many heads.
struct SizeKey {
  Index heads;
  std::string memory;
  Index bytes;

  auto operator<=>(const SizeKey&) const = default;
};

/// How large each memory and each that is tried is at each size; none where even the least one
/// needs more.
using Sizes = std::map<SizeKey, Size>;

/// The size of a memory that fits into the bytes of the table, by the models of the first task that
/// it fits in; null if there is none.
inline const Size* size_in_table(const Settings& s, const std::vector<Task>& tasks,
                                 const Sizes& sizes, const std::string& memory) {
  for (const Task& task : tasks)
    if (const auto size = sizes.find({task.heads, memory, s.bytes}); size != sizes.end())
      return &size->second;
  return nullptr;
}

/// Finds all of them, and says which memories are left out where.
inline Sizes sizes_of(Settings s, const std::vector<Task>& tasks) {
  Sizes sizes;
  const auto all = budgets(s, tasks);
  std::set<Index> heads;
  for (const Task& task : tasks) heads.insert(task.heads);
  support::ProgressLine line("sizes", std::ssize(heads) * std::ssize(all) * std::ssize(s.memories),
                             0, "model");
  Index sized = 0;
  for (const Index of : heads) {
    s.model.heads = of;
    for (const Index bytes : all)
      for (const std::string& memory : s.memories) {
        if (bytes != s.bytes && !has_sizes(memory)) continue;
        const Index sub_keys = is_lookup(memory) ? sub_keys_of(s, memory, bytes) : 1;
        if (auto size = fitted(s, memory, bytes, sub_keys)) {
          for (const std::string& tried : memories_of(s, memory)) {
            size->config.long_term.tau = tau_of(s, tried);
            sizes.emplace(SizeKey{of, tried, bytes}, *size);
          }
          sizes.emplace(SizeKey{of, memory, bytes}, std::move(*size));
        } else {
          line.clear();
          std::fprintf(stderr,
                       "%s is left out at %lld bytes, with %lld heads: its least state is larger\n",
                       memory.c_str(), static_cast<long long>(bytes), static_cast<long long>(of));
        }
        line.update(++sized);
      }
  }
  return sizes;
}

/// A run that is to be done.
struct Planned {
  Run run;
  const Task* task = nullptr;
  const Size* size = nullptr;
};

/// All runs, done or not: of the first seed and all that is to be tried, or then of the other
/// seeds, and at the other sizes of the figure, of what was best. A run that two words have stands
/// there once.
inline std::vector<Planned> planned(const Settings& s, const std::vector<Task>& tasks,
                                    const Sizes& sizes, const Results& results, bool choosing) {
  std::vector<Planned> runs;
  std::set<std::string> names;
  const auto plan = [&](const Task& task, const Run& run) {
    const auto size = sizes.find({task.heads, run.memory, run.bytes});
    if (size != sizes.end() && names.insert(run.name()).second)
      runs.push_back({run, &task, &size->second});
  };
  for (const Task& task : tasks)
    for (const std::string& memory : s.memories) {
      if (choosing) {
        for (const Try& tried : tries_of(s, task.name, memory))
          plan(task, {task.name, tried.memory, s.bytes, tried.rate, s.seeds.front()});
        continue;
      }
      const Try best = results.best(s, task.name, memory);
      for (const Index bytes : in_curves(s, task) ? budgets(s, tasks) : std::vector{s.bytes})
        if (bytes == s.bytes || has_sizes(memory))
          for (const std::uint64_t seed : s.seeds)
            plan(task, {task.name, best.memory, bytes, best.rate, seed});
    }
  return runs;
}

/// Those that are missing.
inline std::vector<Planned> missing(const Settings& s, const std::vector<Task>& tasks,
                                    const Sizes& sizes, const Results& results, bool choosing) {
  auto runs = planned(s, tasks, sizes, results, choosing);
  std::erase_if(runs, [&](const Planned& run) { return results.find(run.run) != nullptr; });
  return runs;
}

/// Whether a run of the second kind is one of the first, too: with the first seed all is tried.
inline bool is_tried(const Settings& s, const Run& run) {
  return run.bytes == s.bytes && run.seed == s.seeds.front();
}

/// Those of the second kind, as far as they are known before the first are done.
inline std::vector<Planned> expected(const Settings& s, const std::vector<Task>& tasks,
                                     const Sizes& sizes, const Results& results) {
  auto runs = missing(s, tasks, sizes, results, false);
  std::erase_if(runs, [&](const Planned& planned) { return is_tried(s, planned.run); });
  return runs;
}

/// The runs' names.
inline std::vector<std::string> names_of(const std::vector<Planned>& runs) {
  std::vector<std::string> names;
  for (const Planned& planned : runs) names.push_back(planned.run.name());
  return names;
}

/// What runs cost: seconds of computing of a step, and of the evaluation at the end, by task,
/// memory and bytes. The settings must outlive it.
class Costs {
 public:
  /// Measures all that runs need: the second step of each, behind a first one that prepares what
  /// stays.
  Costs(const Settings& s, const std::vector<Planned>& runs) : settings_(s) {
    std::map<Key, const Planned*> wanted;
    for (const Planned& planned : runs) wanted.emplace(key(planned), &planned);
    support::ProgressLine line("costs", std::ssize(wanted), 0, "model");
    Index measured = 0;
    for (const auto& [key, planned] : wanted) {
      costs_[key] = measure(s, *planned);
      line.update(++measured);
    }
  }

  double step(const Planned& planned) const { return costs_.at(key(planned)).step; }
  /// Of a run as a whole.
  double run(const Planned& planned) const {
    const Cost& cost = costs_.at(key(planned));
    return cost.step * static_cast<double>(planned.task->trainer.steps) + cost.evaluation;
  }
  double all(const std::vector<Planned>& runs) const {
    double sum = 0;
    for (const Planned& planned : runs) sum += run(planned);
    return sum;
  }

 private:
  using Key = std::tuple<std::string, std::string, Index>;
  struct Cost {
    double step = 0, evaluation = 0;
  };

  /// Of a swept word it may be the plain memory that turns out to be best: both are of one size.
  Key key(const Planned& planned) const {
    std::string word = word_of(planned.run.memory);
    if (is_swept(word)) word = word_of(with_tau(settings_, word, settings_.long_term.tau));
    return {planned.run.task, word, planned.run.bytes};
  }

  static Cost measure(const Settings& s, const Planned& planned) {
    struct Measured {};
    const auto model = model_of(*planned.size, *planned.task, planned.run.seed);
    const Run& run = planned.run;
    Cost cost;
    double since = 0;
    Index calls = 0;
    try {
      train(*model, training_of(run, s, *planned.task), run, s, *planned.task, [&](Index) {
        cost.step = support::computed() - since;
        since = support::computed();
        if (++calls == std::min<Index>(3, planned.task->trainer.steps + 1)) throw Measured();
      });
    } catch (const Measured&) {
    } catch (const infty::NonFiniteError&) {
    }
    // Twice, without a gradient.
    double tokens = 2 * static_cast<double>(s.evaluation_sequences * planned.task->length);
    if (!planned.task->distances.empty()) tokens += static_cast<double>(planned.task->far_tokens);
    cost.evaluation = cost.step * tokens * cost_of_token(*planned.task);
    return cost;
  }

  const Settings& settings_;
  std::map<Key, Cost> costs_;
};

}  // namespace recall
