// SPDX-License-Identifier: MIT
// The runs of a comparison: done in processes, kept in files.

#include "../../examples/support/finished_runs.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <infty/core/error.hpp>

#include "../../examples/support/interrupt.hpp"
#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

namespace finished_runs {

struct Run {
  std::string task;
  double rate = 0;
};

template <class See>
void each_field(Run& run, See&& see) {
  see("task", run.task);
  see("rate", run.rate);
}

struct Result {
  Run run;
  std::vector<int> points = {};
  double accuracy = 0, seconds = 0;

  std::string name() const { return support::run_name(run.task, run.rate); }
};

template <class See>
void each_field(Result& result, See&& see) {
  see("run", result.run);
  see("points", result.points);
  see("accuracy", result.accuracy);
  see("seconds", result.seconds);
}

using Runs = support::FinishedRuns<Result>;

}  // namespace finished_runs

TEST_CASE("run_name: fields with dashes, numbers by their shortest digits") {
  CHECK(support::run_name("copy 5", "xl", 384, .001, 4) == "copy-5-xl-384-0.001-4");
  CHECK(support::run_name("a/b", 1., 1e-7) == "a-b-1.0-1e-07");
}

TEST_CASE("FinishedRuns: what is written is found, and what is of no use goes") {
  using namespace finished_runs;
  const infty::tests::TemporaryFolder folder;
  Runs runs("test", folder.path());
  runs.clean();  // makes the folder
  for (const char* const name :
       {"b-0.5.safetensors", "a-1.0.safetensors", "a-1.0.json.tmp7-0", "other"})
    infty::tests::write_text(folder / name, "x");
  const Result result{.run = {"a", 1}, .points = {1, 2}, .accuracy = .25, .seconds = 3};
  runs.write(result);
  CHECK_FALSE(std::filesystem::exists(folder / "a-1.0.safetensors"));
  CHECK(runs.find("a-1.0") == nullptr);
  runs.add("a-1.0");
  REQUIRE(runs.find("a-1.0") != nullptr);
  CHECK(runs.find("a-1.0")->points == std::vector{1, 2});
  CHECK_THROWS_AS(runs.add("b-0.5"), infty::IoError);

  infty::tests::write_text(folder / "a-1.0.safetensors",
                           "x");  // as a kill between the two leaves it
  const Runs again("test", folder.path());
  REQUIRE(again.all().size() == 1);
  CHECK(again.find("a-1.0")->accuracy == .25);
  CHECK(again.seconds() == 3);
  again.clean();
  CHECK_FALSE(std::filesystem::exists(folder / "a-1.0.safetensors"));
  CHECK_FALSE(std::filesystem::exists(folder / "a-1.0.json.tmp7-0"));
  CHECK(std::filesystem::exists(folder / "b-0.5.safetensors"));
  CHECK(std::filesystem::exists(folder / "other"));

  std::filesystem::copy_file(folder / "a-1.0.json", folder / "c.json");
  CHECK_THROWS_WITH(Runs("test", folder.path()), Catch::Contains("c.json is the run 'a-1.0'"));
}

TEST_CASE("runs_csv: a line a run by their names, without lists") {
  using namespace finished_runs;
  const infty::tests::TemporaryFolder folder;
  Runs runs("test", folder.path());
  runs.clean();
  for (const char* const task : {"b", "a"}) {
    runs.write({.run = {task, .5}, .points = {7}, .accuracy = .1, .seconds = 2});
    runs.add(support::run_name(task, .5));
  }
  CHECK(support::runs_csv(runs) == "task,rate,accuracy,seconds\na,0.5,0.1,2.0\nb,0.5,0.1,2.0\n");
}

TEST_CASE("do_runs: one that fails is named and takes no other with it") {
  using namespace finished_runs;
  const infty::tests::TemporaryFolder folder;
  Runs runs("test", folder.path());
  runs.clean();
  const std::vector<std::string> names{"a-1.0", "b-1.0", "c-1.0"};
  std::set<std::string> failed;
  std::vector<support::Index> steps(names.size());
  std::size_t ended = 0;
  const support::InterruptGuard interrupt;
  support::ProgressLine line("test", 9, 0);
  support::do_runs(
      runs, names, 2, line, failed,
      [&](std::size_t i, const auto& done) {
        done(2);
        if (i == 1) throw std::runtime_error("as the test has it");
        done(3);
        return Result{.run = {names[i].substr(0, 1), 1}, .accuracy = .5};
      },
      [&](std::size_t i, support::Index more) { steps[i] += more; }, [&](std::size_t) { ++ended; });
  CHECK(failed == std::set<std::string>{"b-1.0"});
  CHECK(steps == std::vector<support::Index>{5, 2, 5});
  CHECK(ended == 3);
  CHECK(runs.all().size() == 2);
  CHECK(runs.find("b-1.0") == nullptr);
  CHECK(runs.find("c-1.0")->accuracy == .5);
}

TEST_CASE("do_runs: Ctrl-C stops what is going on, though SIGTERM is ignored") {
  using namespace finished_runs;
  const infty::tests::TemporaryFolder folder;
  Runs runs("test", folder.path());
  runs.clean();
  std::set<std::string> failed;
  auto* const before = std::signal(SIGTERM, SIG_IGN);
  {
    const support::InterruptGuard interrupt;
    support::ProgressLine line("test", 9, 0);
    support::do_runs(
        runs, {"a-1.0", "b-1.0"}, 1, line, failed,
        [&](std::size_t, const auto& done) {
          done(1);
          for (int i = 0; i < 300; ++i) {
            support::stop_if_interrupted();
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
          return Result{.run = {"a", 1}};
        },
        [&](std::size_t, support::Index) { std::raise(SIGINT); }, [](std::size_t) {});
    CHECK(support::InterruptGuard::signal() == SIGINT);
  }
  std::signal(SIGTERM, before);
  CHECK(failed.empty());
  CHECK(runs.all().empty());
  CHECK(Runs("test", folder.path()).all().empty());
}
