// SPDX-License-Identifier: MIT
#include "comparison.hpp"

#include <cstdio>

#include <infty/eigen/parallel.hpp>

#include "../support/interrupt.hpp"
#include "../support/lock.hpp"
#include "../support/side_by_side.hpp"
#include "../support/warn_of.hpp"
#include "comparison_report.hpp"

namespace sorting {

namespace {

/// Where a run is saved until it is finished.
std::filesystem::path unfinished_of(const ComparisonOptions& options, const Run& run) {
  return options.out / ("unfinished-" + std::to_string(run.length) + '-' + run.model + '-' +
                        std::to_string(run.rate) + '-' + nlohmann::json(run.weight).dump() + '-' +
                        std::to_string(run.seed) + ".safetensors");
}

/// What is missing of the runs of the first seed, by which constants are chosen, or, when these are
/// done, of the others. The longest come first, so that no thread is left alone with one.
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

/// Does the runs, so many at once, each in one thread. Throws support::Interrupted where a signal
/// came, when all that were going on are saved.
void run_all(const char* name, const ComparisonSettings& s, const std::vector<Run>& planned,
             const ComparisonOptions& options, Runs& runs) {
  Index symbols = 0;
  for (const Run& run : planned) symbols += run.length * s.base.steps;
  support::side_by_side(
      name, std::ssize(planned), options.jobs, symbols, "symbol",
      [&](Index i, auto&& done) {
        const Run& run = planned[static_cast<std::size_t>(i)];
        return finish(s, run, options.saving, unfinished_of(options, run),
                      [&](Index steps) { done(steps * run.length); });
      },
      [&](Index, Run run) {
        const auto path = unfinished_of(options, run);
        runs.add(std::move(run));
        std::filesystem::remove(path);
      });
  support::stop_if_interrupted([&] {
    return "stopped, all saved in " + options.out.string() + "; to go on: " + options.again;
  });
}

}  // namespace

void compare(const ComparisonSettings& s, const ComparisonOptions& options) {
  validate(s);
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
  if (std::ranges::any_of(s.base.models, name_has_long_term))
    support::warn_of("sorting", s.base.memory, s.base.segment);
  const auto lock = support::Lock::folder(options.out);
  support::require_same_settings(
      "sorting", s, options.out,
      {"models", "lengths", "seeds", "compression-rates", "auxiliary-weights"});
  Runs runs("sorting", options.out / "runs.csv");
  lock.remove_unfinished({"settings.json", "runs.csv", "table.md", "lengths.csv", "lengths.gp"});
  support::write_file(options.out / "settings.json", support::to_json(s).dump(2) + '\n');
  // What a kill between a run's line and the removal of its checkpoint has left.
  for (const Run& run : runs.all()) std::filesystem::remove(unfinished_of(options, run));
  infty::set_num_threads(1);
  const support::InterruptGuard interrupt;
  for (const bool choosing : {true, false}) {
    const auto planned = missing(s, runs, choosing);
    for (const Run& run : planned) infty::detail::remove_unfinished(unfinished_of(options, run));
    run_all(choosing ? "first seed" : "seeds", s, planned, options, runs);
  }
  const ComparisonReport report(s, runs);
  const std::string table = report.table();
  support::write_file(options.out / "table.md", table);
  support::write_file(options.out / "lengths.csv", report.csv());
  support::write_file(options.out / "lengths.gp", report.figure());
  std::printf("%s", table.c_str());
  std::fflush(stdout);
  const bool drawn = support::draw_figure(options.out, "lengths");
  double seconds = 0;
  for (const Run& run : runs.all()) seconds += run.seconds;
  std::fprintf(stderr,
               "%lld runs, %.0f s of computing; wrote runs.csv, table.md, lengths.csv, "
               "lengths.gp%s to %s\n",
               static_cast<long long>(runs.all().size()), seconds, drawn ? " and lengths.png" : "",
               options.out.c_str());
}

}  // namespace sorting
