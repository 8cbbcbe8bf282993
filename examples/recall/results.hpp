// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "../support/finished_runs.hpp"
#include "cell.hpp"

namespace recall {

/// The runs that are done, in a folder.
class Results : public support::FinishedRuns<Cell> {
 public:
  /// Reads all that is there. Throws infty::IoError for a file that is not what this writes.
  explicit Results(const std::filesystem::path& folder) : FinishedRuns("recall", folder) {}

  /// What is done of this, or null.
  const Cell* find(const Run& run) const { return FinishedRuns::find(run.name()); }

  /// The rate, of all that were tried with the first seed, that had the best accuracy on the
  /// sequences for choosing, at the size of the table.
  double best_rate(const Settings& s, const std::string& task, const std::string& memory) const {
    const Cell* best = nullptr;
    for (const double rate : s.rates) {
      const Cell* const cell = find({task, memory, s.bytes, rate, s.seeds.front()});
      if (cell && (!best || cell->validation > best->validation)) best = cell;
    }
    return best ? best->run.rate : s.rates.front();
  }

  /// Whether a rate can be chosen: all of them have been tried.
  bool all_rates(const Settings& s, const std::string& task, const std::string& memory) const {
    return std::all_of(s.rates.begin(), s.rates.end(), [&](double rate) {
      return find({task, memory, s.bytes, rate, s.seeds.front()}) != nullptr;
    });
  }

  /// The runs of all seeds that are done, with the rate that was best.
  std::vector<const Cell*> seeds(const Settings& s, const std::string& task,
                                 const std::string& memory, Index bytes) const {
    std::vector<const Cell*> all;
    const double rate = best_rate(s, task, memory);
    for (const std::uint64_t seed : s.seeds)
      if (const Cell* const cell = find({task, memory, bytes, rate, seed})) all.push_back(cell);
    return all;
  }
};

}  // namespace recall
