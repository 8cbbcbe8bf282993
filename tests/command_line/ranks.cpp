// SPDX-License-Identifier: MIT
#include "../../examples/support/ranks.hpp"

#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>

#include <infty/parallel/thread_communicator.hpp>

#include "support/catch.hpp"

namespace ranks_tests {

// What launchers set, as a test has it, and behind it as it was.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& wanted) {
    for (const char* const name :
         {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"}) {
      const char* const value = std::getenv(name);
      before_.emplace_back(name, std::pair(value != nullptr, std::string(value ? value : "")));
      ::unsetenv(name);
    }
    for (const auto& [name, value] : wanted) ::setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : before_) {
      if (value.first)
        ::setenv(name.c_str(), value.second.c_str(), 1);
      else
        ::unsetenv(name.c_str());
    }
  }

 private:
  std::vector<std::pair<std::string, std::pair<bool, std::string>>> before_;
};

int started(const std::map<std::string, std::string>& environment) {
  const Environment as(environment);
  return support::ranks_started();
}

TEST_CASE("ranks_started: what mpirun and srun say, and one where nobody says more") {
  CHECK(started({}) == 1);
  CHECK(started({{"OMPI_COMM_WORLD_SIZE", "3"}}) == 3);
  CHECK(started({{"PMI_SIZE", "4"}}) == 4);
  CHECK(started({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "5"}}) == 5);
  // mpirun in a job of Slurm's, whose own step is another one.
  CHECK(
      started({{"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}}) ==
      2);
  // Neither PMIx alone nor a step that no MPI was asked for is a start of ranks.
  CHECK(started({{"PMIX_RANK", "0"}}) == 1);
  CHECK(started({{"SLURM_STEP_NUM_TASKS", "5"}}) == 1);
  CHECK(started({{"OMPI_COMM_WORLD_SIZE", "none"}}) == 1);
}

TEST_CASE("ranks_on_processors: those that may use the same, and no others") {
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  cpu_set_t first;
  CPU_ZERO(&first);
  for (std::size_t i = 0; CPU_COUNT(&first) == 0; ++i)
    if (CPU_ISSET(i, &allowed)) CPU_SET(i, &first);
  std::vector<int> all(3), bound(3);
  infty::on_threads(3, [&](infty::ThreadCommunicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    all[rank] = support::ranks_on_processors(ranks);
    if (rank == 2) ::sched_setaffinity(0, sizeof first, &first);  // of this thread
    bound[rank] = support::ranks_on_processors(ranks);
  });
  CHECK(all == std::vector<int>{3, 3, 3});
  if (CPU_COUNT(&allowed) > 1) CHECK(bound == std::vector<int>{2, 2, 1});
}

}  // namespace ranks_tests
