// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>

#include "finished_runs.hpp"
#include "interrupt.hpp"
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

/// What a rank leaves in the folder where it ends before its share is done, so that none waits for
/// it: not every launcher ends the others then.
class LeaveMark {
 public:
  /// Takes away what this rank has left the last time. Nothing is left by one alone.
  /// @param patience  how long others' marks are looked at before they count, for they may be of
  /// the last time, of ranks that begin later than this one
  LeaveMark(const RunShare& share, std::filesystem::path folder,
            std::chrono::milliseconds patience = std::chrono::seconds(5))
      : share_(share), folder_(std::move(folder)), patience_(patience) {
    std::error_code none;
    std::filesystem::remove(file(share_.rank), none);
  }
  LeaveMark(const LeaveMark&) = delete;
  LeaveMark& operator=(const LeaveMark&) = delete;
  ~LeaveMark() {
    if (!share_.alone() && !done_) std::ofstream(file(share_.rank)) << "left\n";
  }

  /// Says that the share is done.
  void done() { done_ = true; }

  /// For those who wait: throws infty::Error that names the first of the other ranks that has left.
  void require_others(const std::string& program) {
    const auto now = std::chrono::steady_clock::now();
    int left = 0;
    while (left < share_.ranks && (left == share_.rank || !std::filesystem::exists(file(left))))
      ++left;
    if (!since_) since_ = now;
    infty::require<infty::Error>(left == share_.ranks || now - *since_ < patience_, program,
                                 "rank ", left, " of ", share_.ranks,
                                 " has left before its runs were done; the same command goes on");
    if (left == share_.ranks) since_.reset();
  }

 private:
  std::filesystem::path file(int rank) const {
    return folder_ / ("rank-" + std::to_string(rank) + ".left");
  }

  RunShare share_;
  std::filesystem::path folder_;
  std::chrono::milliseconds patience_;
  std::optional<std::chrono::steady_clock::time_point> since_;  ///< when a mark was seen first
  bool done_ = false;
};

/// Returns what those call who wait for other ranks' runs, which are kept in the folder `out`: it
/// throws support::Interrupted where a signal has come, and says that the command `again` goes on;
/// infty::Error where one of the other ranks has left. The mark must outlive it.
inline auto stopping(std::string program, std::filesystem::path out, std::string again,
                     LeaveMark& mark) {
  return [program = std::move(program), out = std::move(out), again = std::move(again), &mark] {
    stop_if_interrupted(out, again);
    mark.require_others(program);
  };
}

/// Waits until a condition holds, asking five times a second, and calling stop() each time, which
/// throws where it is to end.
template <class Condition, class Stop>
void wait_until(Condition&& condition, Stop&& stop) {
  while (!condition()) {
    stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

/// Waits for the runs of other ranks, and takes them up. @throws what stop() does
template <class Result, class Stop>
void take_up(FinishedRuns<Result>& runs, const std::vector<std::string>& names, Stop&& stop) {
  for (const std::string& name : names) wait_until([&] { return runs.look_for(name); }, stop);
}

}  // namespace support
