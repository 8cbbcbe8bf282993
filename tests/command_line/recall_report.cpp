// SPDX-License-Identifier: MIT
// What recall says of runs that are done, from a folder of them.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <infty/eigen/default.hpp>

#include "../../examples/recall/distance_figure.hpp"
#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

TEST_CASE("recall: a run whose loss was no number counts as 0 in the table of distances, too") {
  const infty::tests::TemporaryFolder folder;
  recall::Settings s;
  s.memories = {"attention", "none", "xl"};
  s.rates = {.01};
  s.seeds = {1, 2};
  recall::Task task;
  task.name = "needle";
  task.distances = {16, 2048};
  recall::Results results(folder.path());
  const auto add = [&](const std::string& memory, std::uint64_t seed, double loss,
                       const std::vector<recall::DistancePoint>& distances) {
    recall::Cell cell{.run = {task.name, memory, s.bytes, .01, seed}, .loss = loss};
    cell.distances = distances;
    results.write(cell);
  };
  // Of attention over the whole text the furthest is not asked.
  add("attention", 1, 1, {{16, 8, 8}});
  add("attention", 2, -1, {});
  add("none", 1, -1, {});
  add("none", 2, -1, {});
  add("xl", 1, 1, {{16, 8, 8}, {2048, 4, 8}});
  add("xl", 2, -1, {});
  const recall::Results done(folder.path());

  const auto of = [&](const std::string& memory, infty::Index distance) {
    return recall::accuracies_at(s, task, memory, done, distance);
  };
  CHECK(of("xl", 16) == std::vector<double>{1, 0});
  CHECK(of("xl", 2048) == std::vector<double>{.5, 0});
  CHECK(of("none", 16) == std::vector<double>{0, 0});
  CHECK(of("attention", 2048).empty());
  const std::string table = recall::far_tables(s, {task}, done);
  CAPTURE(table);
  for (const std::string row :
       {"| (the whole sequence) | 0.500 ± 0.707 | - |", "| none | 0.000 ± 0.000 | 0.000 ± 0.000 |",
        "| xl | 0.500 ± 0.707 | 0.250 ± 0.354 |"})
    CHECK(table.find(row) != std::string::npos);

  const auto drawn = [&](const std::string& memory) {
    std::vector<std::pair<infty::Index, infty::Index>> all;
    for (const auto& point : recall::distances_of(s, task, memory, done))
      all.emplace_back(point.right, point.asked);
    return all;
  };
  using Drawn = std::vector<std::pair<infty::Index, infty::Index>>;
  CHECK(drawn("attention") == Drawn{{8, 16}});
  CHECK(drawn("none") == Drawn{{0, 16}, {0, 16}});
  CHECK(drawn("xl") == Drawn{{8, 16}, {4, 16}});

  // What is left out for its size is none of the figures', which gnuplot would not draw.
  s.memories.push_back("infty");
  s.curve_tasks = {"needle"};
  s.curve_bytes = {s.bytes};
  for (const std::string& figure :
       {recall::distance_figure(s, task, done), recall::curves_figure(s, {task}, done)}) {
    CAPTURE(figure);
    CHECK(figure.find("title 'xl'") != std::string::npos);
    CHECK(figure.find("'infty'") == std::string::npos);
  }
}

TEST_CASE("recall: the lessons of an epoch, of however many examples") {
  recall::Task task;
  task.batch = 16;
  task.training = {{{}, 40}, {{}, 0}, {{}, 16}};
  CHECK(recall::epoch_of(task) == 5);
  const auto lesson = [&](infty::Index step) {
    const auto one = recall::lesson_of(task, step);
    return std::vector{static_cast<infty::Index>(one.source - task.training.data()), one.first,
                       one.rows};
  };
  using Lesson = std::vector<infty::Index>;
  for (const infty::Index epoch : {0, 3}) {
    CHECK(lesson(5 * epoch) == Lesson{0, 0, 16});
    CHECK(lesson(5 * epoch + 2) == Lesson{0, 32, 8});
    CHECK(lesson(5 * epoch + 3) == Lesson{1, 40, 16});
    CHECK(lesson(5 * epoch + 4) == Lesson{2, 40, 16});
  }
  // A list of them would be larger than any memory.
  task.training = {{{}, support::most_of_all}};
  CHECK(recall::epoch_of(task) == support::most_of_all / 16);
  CHECK(lesson(support::most_of_all / 16 - 1) == Lesson{0, support::most_of_all - 16, 16});
}

TEST_CASE("recall: what runs cost is known before it is whatever tau turns out to be best") {
  const infty::tests::TemporaryFolder folder;
  recall::Settings s;
  s.memories = {"infty-tau"};
  s.tasks = {"copy"};
  s.curve_tasks = {"copy"};
  s.bytes = 8192;
  s.curve_bytes = {8192, 16384};
  s.copy_gap = 8;
  s.rates = {.01};
  s.taus = {.5, .75};  // the latter is that of the settings: its memory is the plain one
  s.seeds = {1, 2};
  const auto tasks = recall::tasks_of(s);
  const recall::Sizes sizes = recall::sizes_of(s, tasks);
  const recall::Results none(folder.path());
  auto all = recall::missing(s, tasks, sizes, none, true);
  const auto later = recall::expected(s, tasks, sizes, none);
  all.insert(all.end(), later.begin(), later.end());
  const recall::Costs costs(s, all);
  for (const double best : s.taus) {
    for (const double tau : s.taus) {
      recall::Cell cell{.run = {tasks.front().name, recall::with_tau(s, "infty-tau", tau), s.bytes,
                                .01, s.seeds.front()}};
      cell.validation = tau == best ? 1 : 0;
      none.write(cell);
    }
    const recall::Results tried(folder.path());
    const auto runs = recall::planned(s, tasks, sizes, tried, false);
    CHECK(runs.size() == 4);
    for (const recall::Planned& run : runs) {
      CHECK(run.run.memory == recall::with_tau(s, "infty-tau", best));
      CHECK(costs.run(run) > 0);
    }
  }
}
