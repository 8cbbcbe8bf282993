// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>

#include "../support/training.hpp"
#include "comparison_settings.hpp"

namespace sorting {

/// Where the results of a comparison go, and what changes none of them.
struct ComparisonOptions {
  std::filesystem::path out;
  Index jobs = 2;  ///< runs side by side, a process each
  support::Saving saving = {};
  std::string again;  ///< the command that goes on
};

/// Trains and evaluates every model at every length with every seed and writes settings.json,
/// runs.csv, table.md, lengths.csv, lengths.gp and a figure; runs that are in the folder `runs`
/// already are not done again. Returns whether all are done: of each that failed it says why.
/// Throws support::Interrupted where a signal came, when what was going on is saved.
bool compare(const ComparisonSettings& settings, const ComparisonOptions& options);

}  // namespace sorting
