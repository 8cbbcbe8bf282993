// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "../support/finished_runs.hpp"
#include "cell.hpp"
#include "tries.hpp"

namespace recall {

/// The runs that are done, in a folder.
class Results : public support::FinishedRuns<Cell> {
 public:
  /// Reads all that is there. Throws infty::IoError for a file that is not what this writes.
  explicit Results(const std::filesystem::path& folder) : FinishedRuns("recall", folder) {}

  /// What is done of this, or null.
  const Cell* find(const Run& run) const { return FinishedRuns::find(run.name()); }

  /// What, of all that was tried with the first seed, had the best accuracy on the sequences for
  /// choosing, at the size of the table.
  Try best(const Settings& s, const std::string& task, const std::string& word) const {
    const auto tries = tries_of(s, task, word);
    const Cell* best = nullptr;
    for (const Try& tried : tries) {
      const Cell* const cell = find({task, tried.memory, s.bytes, tried.rate, s.seeds.front()});
      if (cell && (!best || cell->validation > best->validation)) best = cell;
    }
    return best ? Try{best->run.memory, best->run.rate} : tries.front();
  }

  /// Whether that can be chosen: all have been tried.
  bool all_tried(const Settings& s, const std::string& task, const std::string& word) const {
    return std::ranges::all_of(tries_of(s, task, word), [&](const Try& tried) {
      return find({task, tried.memory, s.bytes, tried.rate, s.seeds.front()}) != nullptr;
    });
  }

  /// The runs of all seeds that are done, of what was best.
  std::vector<const Cell*> seeds(const Settings& s, const std::string& task,
                                 const std::string& word, Index bytes) const {
    std::vector<const Cell*> all;
    const Try tried = best(s, task, word);
    for (const std::uint64_t seed : s.seeds)
      if (const Cell* const cell = find({task, tried.memory, bytes, tried.rate, seed}))
        all.push_back(cell);
    return all;
  }
};

}  // namespace recall
