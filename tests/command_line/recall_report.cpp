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
}
