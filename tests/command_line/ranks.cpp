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
         {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "OMP_PROC_BIND",
          "OMP_PLACES", "GOMP_CPU_AFFINITY"}) {
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

cpu_set_t allowed_here() {
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  return allowed;
}

TEST_CASE("shared_processors: those of ranks that may use the same, and of no others") {
  const cpu_set_t allowed = allowed_here();
  cpu_set_t first;
  CPU_ZERO(&first);
  for (std::size_t i = 0; CPU_COUNT(&first) == 0; ++i)
    if (CPU_ISSET(i, &allowed)) CPU_SET(i, &first);
  std::vector<int> all(3), before(3), bound(3);
  infty::on_threads(3, [&](infty::ThreadCommunicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    const auto shared = support::shared_processors(ranks);
    all[rank] = shared.ranks;
    before[rank] = shared.before;
    if (rank == 2) ::sched_setaffinity(0, sizeof first, &first);  // of this thread
    bound[rank] = support::shared_processors(ranks).ranks;
  });
  CHECK(all == std::vector<int>{3, 3, 3});
  CHECK(before == std::vector<int>{0, 1, 2});
  if (CPU_COUNT(&allowed) > 1) CHECK(bound == std::vector<int>{2, 2, 1});
}

TEST_CASE("pin: ranks that share processors get parts of their own, if these are enough") {
  const Environment nothing({});
  const cpu_set_t allowed = allowed_here();
  const int here = CPU_COUNT(&allowed);
  const std::vector<int> in_order = support::by_cores(allowed);
  CHECK(std::ssize(in_order) == here);
  for (const int processor : in_order)
    CHECK(CPU_ISSET(static_cast<std::size_t>(processor), &allowed));
  std::vector<cpu_set_t> own(2);
  std::vector<int> pinned(2), too_many(2);
  infty::on_threads(2, [&](infty::ThreadCommunicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    const auto shared = support::shared_processors(ranks);
    too_many[rank] = support::pin(shared, here / 2 + 1);
    pinned[rank] = support::pin(shared, 1);
    ::sched_getaffinity(0, sizeof own[rank], &own[rank]);
  });
  CHECK(too_many == std::vector<int>{0, 0});
  if (here < 2) {
    CHECK(pinned == std::vector<int>{0, 0});
    return;
  }
  CHECK(pinned == std::vector<int>{here / 2, here / 2});
  cpu_set_t both;
  CPU_AND(&both, &own[0], &own[1]);
  CHECK(CPU_COUNT(&both) == 0);
  for (const cpu_set_t& part : own) CHECK(CPU_COUNT(&part) == here / 2);
  // One alone, ranks that are more than processors, and what OpenMP was told: nothing changes.
  CHECK(support::pin({.ranks = 1, .before = 0, .allowed = allowed}, 1) == 0);
  CHECK(support::pin({.ranks = here + 1, .before = 0, .allowed = allowed}, 1) == 0);
  {
    const std::map<std::string, std::string> unbound{{"OMP_PROC_BIND", "false"}};
    const Environment told(unbound);
    CHECK(support::pin({.ranks = 2, .before = 0, .allowed = allowed}, 1) == 0);
  }
  const cpu_set_t behind = allowed_here();
  CHECK(CPU_EQUAL(&behind, &allowed));
  CHECK(support::said_of_pinning(0).empty());
  CHECK(support::said_of_pinning(1) == ", each pinned to a processor of its own");
  CHECK(support::said_of_pinning(4) == ", each pinned to 4 processors of its own");
}

}  // namespace ranks_tests
