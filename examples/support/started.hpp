// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

// What a launcher of ranks, if there was one, has put into the environment.

namespace support {

/// How many ranks a launcher says that it has started: mpirun, or Slurm's srun by PMIx. 1 if none
/// has.
inline int ranks_started() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* const size = std::getenv(name)) return std::max(1, std::atoi(size));
  const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  const bool started = tasks != nullptr && std::getenv("PMIX_RANK") != nullptr;
  return started ? std::max(1, std::atoi(tasks)) : 1;
}

/// Which of these this process is; 0 if it is alone.
inline int rank_started() {
  if (ranks_started() == 1) return 0;
  for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* const rank = std::getenv(name)) return std::max(0, std::atoi(rank));
  return 0;
}

/// Makes programs that this process starts no ranks: each is alone.
inline void start_alone() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string name(*variable, std::strcspn(*variable, "="));
    for (const char* const begin : {"OMPI_", "PMI_", "PMIX_"})
      if (name.starts_with(begin)) names.push_back(name);
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

/// A program's name in what it says: which of the ranks it is, where there are several.
inline std::string name_among_ranks(const std::string& program) {
  if (ranks_started() == 1) return program;
  return program + ": rank " + std::to_string(rank_started()) + " of " +
         std::to_string(ranks_started());
}

}  // namespace support
