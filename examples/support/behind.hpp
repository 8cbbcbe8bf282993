// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string>

#include <infty/core/config.hpp>
#include <infty/train/trainer.hpp>

#include "json.hpp"

namespace support {

using infty::Index;

/// Seconds that this process has computed.
inline double computed() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// What has come of a training until now: the mean loss of the last tenth of its steps, as far as
/// they are done, or of the last one where an epoch ended above the accuracy that is enough; the
/// seconds that it has taken; and the accuracy behind the last epoch, where it is asked for.
struct Behind {
  double loss = 0, seconds = 0, accuracy = 0;

  /// Adds the loss of a step, if it counts.
  /// @param done  steps, with this one
  /// @param steps  in all
  void add_loss(double of_step, Index done, Index steps) {
    const Index counted = std::max<Index>(1, steps / 10);
    if (done > steps - counted) loss += of_step / static_cast<double>(counted);
  }
};

template <class See>
void each_field(Behind& behind, See&& see) {
  see("loss", behind.loss);
  see("seconds", behind.seconds);
  see("accuracy", behind.accuracy);
}

/// Keeps it, and what the file says of it is checked before anything is changed.
/// @param file  what the trainer's checkpoint is called in messages
inline void keep(infty::Trainer<float>& trainer, Behind& behind,
                 const std::filesystem::path& file) {
  trainer.keep_text(
      "behind", [&behind] { return json_of(behind).dump(); },
      [&behind, where = file.string() + ": behind"](const std::string& text) {
        const auto there = parse<Behind>(text, where);
        return [&behind, there] { behind = there; };
      });
}

}  // namespace support
