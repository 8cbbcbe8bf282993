// SPDX-License-Identifier: MIT
#pragma once

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

}  // namespace support
