// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <infty/core/config.hpp>

#include "../support/finished_runs.hpp"
#include "distances.hpp"

namespace recall {

using infty::Index;

/// What a training run is: these tell it from all others of a folder.
struct Run {
  std::string task, memory;
  Index bytes = 0;  ///< that it may have
  double rate = 0;
  std::uint64_t seed = 0;

  std::string name() const { return support::run_name(task, memory, bytes, rate, seed); }
};

template <class See>
void each_field(Run& run, See&& see) {
  see("task", run.task);
  see("memory", run.memory);
  see("bytes", run.bytes);
  see("rate", run.rate);
  see("seed", run.seed);
}

/// What came out of it.
struct Cell {
  Run run;
  Index parameters = 0;
  std::size_t bytes = 0;  ///< of a row's full state
  std::size_t held = 0;   ///< the same with what is kept to be quick; 0: unknown
  /// Mean over the last tenth of the steps, or of the last one where an epoch ended above the
  /// accuracy that is enough; -1 where it was no number.
  double loss = 0;
  double validation = 0, accuracy = 0;
  double seconds = 0;  ///< of computing
  /// Accuracy at every distance, in tasks that have distances.
  std::vector<DistancePoint> distances = {};

  std::string name() const { return run.name(); }
};

template <class See>
void each_field(Cell& cell, See&& see) {
  see("run", cell.run);
  see("parameters", cell.parameters);
  see("state_bytes", cell.bytes);
  see("held_bytes", cell.held);
  see("loss", cell.loss);
  see("validation", cell.validation);
  see("accuracy", cell.accuracy);
  see("seconds", cell.seconds);
  see("distances", cell.distances);
}

}  // namespace recall
