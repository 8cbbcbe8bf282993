// SPDX-License-Identifier: MIT
#include "comparison.hpp"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <infty/eigen/parallel.hpp>

#include "../support/finished_runs.hpp"
#include "../support/interrupt.hpp"
#include "../support/lock.hpp"
#include "../support/progress_line.hpp"
#include "../support/warn_of.hpp"
#include "comparison_report.hpp"

namespace sorting {

namespace {

/// What is missing of the runs of the first seed, by which constants are chosen, or, when these are
/// done, of the others. The longest come first, so that no process is left alone with one.
std::vector<Run> missing(const ComparisonSettings& s, const Runs& runs, bool choosing) {
  std::vector<Run> planned;
  const auto plan = [&](Index length, const std::string& model, const Try& tried,
                        std::uint64_t seed) {
    if (!find(runs, length, model, tried, seed))
      planned.push_back({.length = length,
                         .model = model,
                         .rate = tried.rate,
                         .weight = tried.weight,
                         .seed = seed});
  };
  for (const Index length : s.compared.lengths)
    for (const std::string& model : s.base.models)
      if (choosing)
        for (const Try& tried : tries_of(s, model, length))
          plan(length, model, tried, s.compared.seeds.front());
      else
        for (const std::uint64_t seed : s.compared.seeds)
          plan(length, model, best_try(s, runs, model, length), seed);
  std::ranges::stable_sort(planned, std::ranges::greater(), &Run::length);
  return planned;
}

/// Does the runs, so many at once, but those that `failed` has, and adds to it. Throws
/// support::Interrupted where a signal came, when all that were going on are saved.
void run_all(const char* name, const ComparisonSettings& s, std::vector<Run> planned,
             const ComparisonOptions& options, Runs& runs, std::set<std::string>& failed) {
  std::erase_if(planned, [&](const Run& run) { return failed.contains(run.name()); });
  std::vector<std::string> names;
  Index symbols = 0, before = 0;
  for (const Run& run : planned) {
    names.push_back(run.name());
    symbols += run.length * s.base.steps;
  }
  support::ProgressLine line(name, symbols, 0, "symbol");
  support::do_runs(
      runs, names, options.jobs, line, failed,
      [&](std::size_t i, const auto& done) {
        return finish(s, planned[i], options.saving, runs.checkpoint(names[i]), done);
      },
      [&](std::size_t i, Index steps) { line.update(before += steps * planned[i].length); },
      [](std::size_t) {});
  support::stop_if_interrupted(options.out, options.again);
}

}  // namespace

bool compare(const ComparisonSettings& s, const ComparisonOptions& options) {
  validate(s);
  support::use_products(s.base.products);
  infty::set_num_threads(1);
  // What cannot be made is told before anything is trained.
  for (const Index length : s.compared.lengths)
    for (const std::string& model : s.base.models)
      for (const Try& tried : tries_of(s, model, length)) {
        infty::require(tried.weight == 0 || tried.rate <= s.base.task.symbols, "sorting",
                       "--compression-rates has ", tried.rate, ", tried at length ", length,
                       ": it must be at most --symbols = ", s.base.task.symbols,
                       ", of which the last segment compresses what --auxiliary-weights train by, "
                       "or these must be 0");
        make_model(s, {.length = length, .model = model, .rate = tried.rate});
      }
  if (std::ranges::any_of(s.base.models, [&](const std::string& name) {
        return name_has_long_term(name) && contraction_of(s.base, name) == "fixed";
      }))
    support::warn_of("sorting", s.base.memory, s.base.segment);
  const auto lock = support::Lock::folder(options.out);
  support::require_same_settings(
      "sorting", s, options.out,
      {"models", "lengths", "seeds", "compression-rates", "auxiliary-weights"});
  Runs runs("sorting", options.out / "runs");
  lock.remove_unfinished({"settings.json", "runs.csv", "table.md", "lengths.csv", "lengths.gp"});
  support::write_file(options.out / "settings.json", support::to_json(s).dump(2) + '\n');
  runs.clean();
  std::set<std::string> failed;
  {
    const support::InterruptGuard interrupt;
    for (const bool choosing : {true, false})
      run_all(choosing ? "first seed" : "seeds", s, missing(s, runs, choosing), options, runs,
              failed);
  }
  runs.clean();  // of what runs that were killed have left
  const ComparisonReport report(s, runs);
  const std::string table = report.table();
  support::write_file(options.out / "table.md", table);
  support::write_file(options.out / "runs.csv", support::runs_csv(runs));
  support::write_file(options.out / "lengths.csv", report.csv());
  support::write_file(options.out / "lengths.gp", report.figure());
  std::printf("%s", table.c_str());
  std::fflush(stdout);
  const bool drawn = support::draw_figure(options.out, "lengths");
  std::fprintf(stderr,
               "%zu runs, %.0f s of computing; wrote runs.csv, table.md, lengths.csv, "
               "lengths.gp%s to %s\n",
               runs.all().size(), runs.seconds(), drawn ? " and lengths.png" : "",
               options.out.c_str());
  return support::none_failed("sorting", failed.size());
}

}  // namespace sorting
