// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

#include <sched.h>
#include <unistd.h>

#include <infty/parallel/communicator.hpp>
#include <infty/parallel/messages.hpp>

namespace support {

/// The machine that a process runs on, and those of its processors that it may use, which
/// `mpirun --bind-to` chooses.
struct Processors {
  char machine[256] = {};
  cpu_set_t allowed{};

  /// Those of this process; where the system does not say, those of every such one are the same.
  static Processors own() {
    Processors found;
    CPU_ZERO(&found.allowed);
    ::gethostname(found.machine, sizeof found.machine - 1);
    ::sched_getaffinity(0, sizeof found.allowed, &found.allowed);
    return found;
  }

  bool operator==(const Processors& other) const {
    return std::strcmp(machine, other.machine) == 0 && CPU_EQUAL(&allowed, &other.allowed) != 0;
  }
};

/// The processors that ranks share: those that may use the same, and no others.
struct SharedProcessors {
  int ranks = 1, before = 0;  ///< how many these are; of them, how many come before this one
  cpu_set_t allowed{};
};

/// What this rank shares. All call it together.
template <infty::Communicator C>
SharedProcessors shared_processors(C& ranks) {
  const Processors own = Processors::own();
  const auto all = infty::gather(ranks, own);
  return {static_cast<int>(std::count(all.begin(), all.end(), own)),
          static_cast<int>(std::count(all.begin(), all.begin() + ranks.rank(), own)), own.allowed};
}

/// A number that the system tells of a processor; 0 where it does not.
inline int topology(int processor, const char* what) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/" +
                     what);
  int number = 0;
  return file >> number ? number : 0;
}

/// The processors of a set, those of a core and those of a package behind each other.
inline std::vector<int> by_cores(const cpu_set_t& set) {
  std::vector<std::array<int, 3>> found;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(static_cast<std::size_t>(i), &set))
      found.push_back({topology(i, "physical_package_id"), topology(i, "core_id"), i});
  std::sort(found.begin(), found.end());
  std::vector<int> processors;
  for (const auto& one : found) processors.push_back(one[2]);
  return processors;
}

/// Leaves this thread, and those that it starts from now on, the part of shared processors that is
/// this rank's alone; returns how many these are. Returns 0, and changes nothing, where ranks share
/// none, where not every one of so many threads would have a processor, where OpenMP was told what
/// to do about that (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY), or where the system refuses.
inline int pin(const SharedProcessors& shared, int threads) {
  for (const char* const name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"})
    if (std::getenv(name) != nullptr) return 0;
  const std::vector<int> processors = by_cores(shared.allowed);
  const auto own = static_cast<int>(processors.size()) / shared.ranks;
  if (shared.ranks == 1 || own == 0 || threads > own) return 0;
  cpu_set_t part;
  CPU_ZERO(&part);
  for (int i = 0; i < own; ++i)
    CPU_SET(static_cast<std::size_t>(processors[static_cast<std::size_t>(shared.before * own + i)]),
            &part);
  return ::sched_setaffinity(0, sizeof part, &part) == 0 ? own : 0;
}

/// What is said of it behind the number of threads.
inline std::string said_of_pinning(int processors) {
  if (processors == 0) return "";
  return processors == 1
             ? ", each pinned to a processor of its own"
             : ", each pinned to " + std::to_string(processors) + " processors of its own";
}

}  // namespace support
