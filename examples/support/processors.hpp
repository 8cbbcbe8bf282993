// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

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

/// How many ranks run on this one's processors, itself among them. All call it together.
template <infty::Communicator C>
int ranks_on_processors(C& ranks) {
  const Processors own = Processors::own();
  const auto all = infty::gather(ranks, own);
  return static_cast<int>(std::count(all.begin(), all.end(), own));
}

}  // namespace support
