// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>

#include "options.hpp"
#include "training.hpp"

namespace support {

/// The options that say when checkpoints are due.
inline void add_saving(CLI::App& app, Saving& saving) {
  add_option(app, "--save-every", saving.every, "steps between checkpoints, at most", from(1))
      ->capture_default_str();
  add_option(app, "--save-minutes", saving.minutes, "the same in minutes; 0: by steps alone",
             {.least = 0})
      ->capture_default_str();
}

/// The options of runs that are kept in a folder: which, and how many go side by side.
inline void add_runs(CLI::App& app, std::filesystem::path& out, Index& jobs) {
  app.add_option("--out", out, "folder for results; goes on where it has stopped there")
      ->capture_default_str();
  add_option(app, "--jobs", jobs, "runs side by side, a process each", {1, most_at_once})
      ->capture_default_str();
}

}  // namespace support
