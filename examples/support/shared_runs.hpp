// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "finished_runs.hpp"
#include "started.hpp"

// A comparison's runs, shared out among the ranks that `mpirun` has started the program on. Ranks
// tell each other by the folder of the runs, which all must see, and not by MPI.

namespace support {

/// Which of the ranks this process is, and how many there are.
struct RunShare {
  int rank = 0, ranks = 1;

  /// That of this process. Programs that it starts from then on are alone.
  static RunShare own() {
    const RunShare share{rank_started(), ranks_started()};
    start_alone();
    return share;
  }

  /// Whether this is the rank that cleans the folder, and makes tables and figures of all runs.
  bool first() const { return rank == 0; }
  /// Whether there is no other.
  bool alone() const { return ranks == 1; }
  /// Whether the run of this number, among all that there are, is this rank's.
  bool has(std::size_t number) const {
    return number % static_cast<std::size_t>(ranks) == static_cast<std::size_t>(rank);
  }

  /// Those of all runs' names that are this rank's and not done.
  template <class Result>
  std::vector<std::size_t> missing(const FinishedRuns<Result>& runs,
                                   const std::vector<std::string>& names) const {
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (has(i) && runs.find(names[i]) == nullptr) own.push_back(i);
    return own;
  }
};

/// Waits until a condition holds, asking five times a second, and calling stop() each time, which
/// throws where it is to end.
template <class Condition, class Stop>
void wait_until(Condition&& condition, Stop&& stop) {
  while (!condition()) {
    stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

/// Waits for the runs of other ranks, and takes them up. One that fails ends its rank, and so the
/// launcher all of them. @throws what stop() does
template <class Result, class Stop>
void take_up(FinishedRuns<Result>& runs, const std::vector<std::string>& names, Stop&& stop) {
  for (const std::string& name : names) wait_until([&] { return runs.look_for(name); }, stop);
}

}  // namespace support
