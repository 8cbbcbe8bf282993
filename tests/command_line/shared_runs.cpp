// SPDX-License-Identifier: MIT
// A comparison's runs that ranks share out: every run is one rank's, and taken up by the others.

#include "../../examples/support/shared_runs.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <infty/core/error.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

namespace shared_runs_tests {

struct Outcome {
  std::string task;
  double seconds = 0;

  std::string name() const { return support::run_name(task); }
};

template <class See>
void each_field(Outcome& outcome, See&& see) {
  see("task", outcome.task);
  see("seconds", outcome.seconds);
}

using OutcomeRuns = support::FinishedRuns<Outcome>;

struct GivenUp {};

TEST_CASE("RunShare: ranks share the runs out, and do those that are missing") {
  const infty::tests::TemporaryFolder folder;
  const std::vector<std::string> names{"a", "b", "c", "d", "e"};
  const OutcomeRuns none("test", folder.path());
  none.make();
  CHECK(support::RunShare{}.missing(none, names) == std::vector<std::size_t>{0, 1, 2, 3, 4});
  CHECK(support::RunShare{}.alone());
  std::vector<int> owners(names.size());
  for (int rank = 0; rank < 3; ++rank) {
    const support::RunShare share{rank, 3};
    CHECK(share.first() == (rank == 0));
    CHECK_FALSE(share.alone());
    for (const std::size_t i : share.missing(none, names)) ++owners[i];
  }
  CHECK(owners == std::vector<int>(names.size(), 1));
  // What is done changes nobody's share of the rest.
  none.write({"a", 1});
  const OutcomeRuns one("test", folder.path());
  CHECK(support::RunShare{0, 3}.missing(one, names) == std::vector<std::size_t>{3});
  CHECK(support::RunShare{1, 3}.missing(one, names) == std::vector<std::size_t>{1, 4});
}

TEST_CASE("take_up: waits for the runs of others, until it is to stop") {
  const infty::tests::TemporaryFolder folder;
  OutcomeRuns runs("test", folder.path());
  runs.make();
  CHECK_FALSE(runs.look_for("a"));
  int asked = 0;
  support::take_up(runs, {"a", "b"}, {0, 2}, [&](const std::string& run, int owner) {
    CHECK(owner == (run == "a" ? 0 : 1));
    // What another rank does meanwhile.
    runs.write({std::string(1, static_cast<char>('a' + asked++)), 1});
  });
  CHECK(asked == 2);
  CHECK(runs.find("b") != nullptr);
  CHECK(runs.look_for("a"));
  CHECK_THROWS_AS(
      support::take_up(runs, {"a", "c"}, {0, 2}, [](const std::string&, int) { throw GivenUp(); }),
      GivenUp);
}

TEST_CASE("RankMark: a rank that leaves before its share is done is named to those who wait") {
  const infty::tests::TemporaryFolder folder;
  using support::RankMark;
  constexpr support::Patience at_once{.marks = std::chrono::milliseconds(0)};
  {
    RankMark alone({0, 1}, folder.path(), "list", at_once);
    RankMark all_done({2, 3}, folder.path(), "list", at_once);
    all_done.done();
    RankMark leaves({1, 3}, folder.path(), "list", at_once);
  }
  CHECK(std::filesystem::exists(folder / "rank-1.left"));
  CHECK_FALSE(std::filesystem::exists(folder / "rank-0.left"));
  CHECK_FALSE(std::filesystem::exists(folder / "rank-2.left"));
  RankMark first({0, 3}, folder.path(), "list", at_once), patient({2, 3}, folder.path(), "list");
  CHECK_THROWS_WITH(first.require_others("test"),
                    "[test] rank 1 of 3 has left before its runs were done; the same command goes "
                    "on");
  patient.require_others("test");  // it may be of the last time
  RankMark again({1, 3}, folder.path(), "list", at_once);
  first.require_others("test");
  for (RankMark* const mark : {&first, &patient, &again}) mark->done();
}

TEST_CASE("RankMark: who waits for a run that nobody does is told so") {
  const infty::tests::TemporaryFolder folder, elsewhere;
  using support::RankMark;
  constexpr std::chrono::milliseconds now{0};
  constexpr support::Patience at_once{.marks = now, .absent = now};
  {
    RankMark first({0, 3}, folder.path(), "a, b", at_once);
    RankMark same({1, 3}, folder.path(), "a, b", at_once);
    RankMark other({2, 3}, folder.path(), "a, c", at_once);
    first.wait_for("test", "a", 1);
    CHECK_THROWS_WITH(first.wait_for("test", "b", 2),
                      "[test] the run b is that of rank 2 of 3, whose list of runs is another one: "
                      "all ranks must have the same options");
    RankMark patient({0, 3}, folder.path(), "a, b");
    patient.wait_for("test", "b", 2);  // it may be of the last time
    RankMark fewer({0, 2}, folder.path(), "a, b", at_once);
    CHECK_THROWS_WITH(fewer.wait_for("test", "a", 1), Catch::Contains("another one"));
    for (RankMark* const mark : {&other, &same, &patient, &fewer, &first}) mark->done();
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  RankMark first({0, 2}, folder.path(), "a, b", at_once);
  RankMark apart({1, 2}, elsewhere.path(), "a, b", at_once);
  CHECK_THROWS_WITH(first.wait_for("test", "b", 1),
                    "[test] the run b is that of rank 1 of 2, of which there is no sign in " +
                        folder.path().string() +
                        ": all ranks must see the same folder, and have the same options");
  first.done();
  apart.done();
}

}  // namespace shared_runs_tests
