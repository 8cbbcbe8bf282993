// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>

#include "files.hpp"
#include "fingerprint.hpp"
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
  bool has(std::size_t number) const { return owner(number) == rank; }
  /// Which rank's it is.
  int owner(std::size_t number) const {
    return static_cast<int>(number % static_cast<std::size_t>(ranks));
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

/// How long ranks look at what is amiss before it counts.
struct Patience {
  /// Of others' marks, which may be of the last time, of ranks that begin later than this one.
  std::chrono::milliseconds marks = std::chrono::seconds(5);
  /// Of a mark that is not there: a rank may begin later, and a folder on a network shows late.
  std::chrono::milliseconds absent = std::chrono::minutes(2);
  /// Until it is said what is waited for, and between two such lines.
  std::chrono::milliseconds silent = std::chrono::seconds(2), between = std::chrono::minutes(1);
};

/// What a rank has in the folder of the runs, for those who wait for them. From its beginning, a
/// fingerprint of the list of all runs: so ranks that have another, or see another folder, are
/// found out; the first takes them away when all is done. Where it ends before its share is done,
/// that it has left: not every launcher ends the others then.
class RankMark {
 public:
  /// Takes away what this rank has left the last time. Nothing is written by one alone.
  /// @param list  what decides which runs there are: it must be the same on all ranks
  RankMark(const RunShare& share, std::filesystem::path folder, const std::string& list,
           Patience patience = {})
      : share_(share), folder_(std::move(folder)), patience_(patience) {
    std::error_code none;
    std::filesystem::remove(left(share_.rank), none);
    if (share_.alone()) return;
    Fingerprint fingerprint;
    fingerprint.add_text(list);
    list_ = std::to_string(share_.ranks) + " ranks, list " + std::to_string(fingerprint.bits());
    write_file(here(share_.rank), list_ + '\n');
  }
  RankMark(const RankMark&) = delete;
  RankMark& operator=(const RankMark&) = delete;
  ~RankMark() {
    if (share_.alone()) return;
    if (!done_) std::ofstream(left(share_.rank)) << "left\n";
    // Once all runs are done nobody waits for another any more; until then lists are looked at.
    std::error_code none;
    for (int rank = 0; share_.first() && done_ && rank < share_.ranks; ++rank)
      std::filesystem::remove(here(rank), none);
  }

  /// Says that the share is done.
  void done() { done_ = true; }

  /// For those who wait: throws infty::Error that names the first of the other ranks that has left.
  void require_others(const std::string& program) {
    int gone = 0;
    while (gone < share_.ranks && (gone == share_.rank || !std::filesystem::exists(left(gone))))
      ++gone;
    infty::require<infty::Error>(!lasts(left_since_, gone < share_.ranks, patience_.marks), program,
                                 "rank ", gone, " of ", share_.ranks,
                                 " has left before its runs were done; the same command goes on");
  }

  /// The same for one that waits for another rank's run, and says so now and then: throws
  /// infty::Error that names the run where that rank has another list, or is not to be seen.
  void wait_for(const std::string& program, const std::string& run, int owner) {
    require_others(program);
    if (owner == share_.rank) return;
    std::string list;
    const bool seen = static_cast<bool>(std::getline(std::ifstream(here(owner)), list));
    const auto require = [&](bool good, const std::string& why) {
      infty::require<infty::Error>(good, program, "the run ", run, " is that of rank ", owner,
                                   " of ", share_.ranks, why);
    };
    require(!lasts(other_since_, seen && list != list_, patience_.marks),
            ", whose list of runs is another one: all ranks must have the same options");
    require(!lasts(absent_since_, !seen, patience_.absent),
            ", of which there is no sign in " + folder_.string() +
                ": all ranks must see the same folder, and have the same options");
    const auto now = Clock::now();
    if (!next_line_) next_line_ = now + patience_.silent;
    if (now < *next_line_) return;
    next_line_ = now + patience_.between;
    std::fprintf(stderr, "%s: rank %d waits for the run %s of rank %d\n", program.c_str(),
                 share_.rank, run.c_str(), owner);
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::filesystem::path left(int rank) const { return file(rank, ".left"); }
  std::filesystem::path here(int rank) const { return file(rank, ".here"); }
  std::filesystem::path file(int rank, const char* kind) const {
    return folder_ / ("rank-" + std::to_string(rank) + kind);
  }

  /// Whether something that holds now has done so for so long, at each look.
  static bool lasts(std::optional<Clock::time_point>& since, bool holds,
                    std::chrono::milliseconds patience) {
    if (!holds) {
      since.reset();
      return false;
    }
    if (!since) since = Clock::now();
    return Clock::now() - *since >= patience;
  }

  RunShare share_;
  std::filesystem::path folder_;
  Patience patience_;
  std::string list_;
  std::optional<Clock::time_point> left_since_, other_since_, absent_since_, next_line_;
  bool done_ = false;
};

/// What those call who wait for other ranks' runs, which are kept in the folder `out`: it throws
/// support::Interrupted where a signal has come, and says that the command `again` goes on;
/// infty::Error where one of the other ranks has left, or does not do what is waited for. The mark
/// must outlive it.
struct Stopping {
  std::string program;
  std::filesystem::path out;
  std::string again;
  RankMark& mark;

  void operator()() const {
    stop_if_interrupted(out, again);
    mark.require_others(program);
  }
  /// While a rank's run is waited for.
  void operator()(const std::string& run, int owner) const {
    stop_if_interrupted(out, again);
    mark.wait_for(program, run, owner);
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

/// Waits for the runs of other ranks, and takes them up. @throws what stop(run, owner) does
/// @param names  of all runs, in the order in which they are shared out
template <class Result, class Stop>
void take_up(FinishedRuns<Result>& runs, const std::vector<std::string>& names,
             const RunShare& share, Stop&& stop) {
  for (std::size_t i = 0; i < names.size(); ++i)
    wait_until([&] { return runs.look_for(names[i]); }, [&] { stop(names[i], share.owner(i)); });
}

}  // namespace support
