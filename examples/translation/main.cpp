// SPDX-License-Identifier: MIT

// Encoder-decoders on a made translation task whose right answer is known: a plain transformer, the
// Memory Transformer's three forms, MemSizer's and Memformer's, of one model with other parts.
//
// Every form is trained with every seed, then translates sentences that it has not been trained on
// (of a language of few, others, too), by the likeliest token and by beam search. What is reported
// is the share of right tokens and of right sentences, mean and standard deviation over the seeds,
// and beside it what is right of the commonest tokens, without reading anything.
// Runs go side by side, each in a process of its own; what is finished is in a file, and what is
// not has a checkpoint: the same command goes on wherever it was stopped.

#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <infty/eigen/parallel.hpp>

#include "../support/command.hpp"
#include "../support/finished_runs.hpp"
#include "../support/interrupt.hpp"
#include "../support/lock.hpp"
#include "../support/need.hpp"
#include "../support/options.hpp"
#include "../support/program.hpp"
#include "../support/progress_line.hpp"
#include "../support/saving.hpp"
#include "run.hpp"

namespace translation {

struct Options {
  std::filesystem::path out = "translation-results";
  Index jobs = 2;
  double floor = 0;  ///< share of sentences that every form is to have right
  support::Saving saving = {};
  std::string again = "";  ///< the command that goes on
};

/// Does the runs that are missing, so many at once; returns how many failed. Throws
/// support::Interrupted where a signal came, when all that were going on are saved.
std::size_t run_all(const Settings& s, const Options& options, Runs& runs) {
  std::vector<std::pair<std::string, std::uint64_t>> missing;
  std::vector<std::string> names;
  for (const std::uint64_t seed : s.seeds)
    for (const std::string& form : s.forms) {
      const std::string name = support::run_name(form, seed);
      if (runs.find(name)) continue;
      missing.emplace_back(form, seed);
      names.push_back(name);
    }
  support::ProgressLine line("train", std::ssize(missing) * steps_of(s), 0);
  const support::InterruptGuard interrupt;
  std::set<std::string> failed;
  Index done = 0;
  support::do_runs(
      runs, names, options.jobs, line, failed,
      [&](std::size_t i, const auto& stepped) {
        return train(s, missing[i].first, missing[i].second, runs.checkpoint(names[i]),
                     options.saving, stepped);
      },
      [&](std::size_t, Index steps) { line.update(done += steps); }, [](std::size_t) {});
  support::stop_if_interrupted(options.out, options.again);
  return failed.size();
}

/// Returns whether all runs are done.
bool compare(const Settings& s, const Options& options) {
  validate(s);
  support::require_memory("translation", s, bytes_of);
  support::use_products(s.products);
  const auto lock = support::Lock::folder(options.out);
  support::require_same_settings("translation", s, options.out, {"forms", "seeds"});
  Runs runs("translation", options.out / "runs");
  lock.remove_unfinished({"settings.json", "runs.csv", "table.md"});
  runs.clean();
  support::write_file(options.out / "settings.json", support::to_json(s).dump(2) + '\n');
  infty::set_num_threads(1);
  if (!support::none_failed("translation", run_all(s, options, runs))) return false;
  runs.clean();  // of what runs that were killed have left
  const std::string text = table(s, runs);
  support::write_file(options.out / "table.md", text);
  std::printf("%s", text.c_str());
  support::write_file(options.out / "runs.csv", support::runs_csv(runs));
  std::fprintf(stderr, "%.0f s of computing; wrote runs.csv and table.md to %s\n", runs.seconds(),
               options.out.c_str());
  for (const std::string& form : s.forms) {
    const auto exact = of_seeds(s, runs, form, [](const Run& run) { return run.beam.exact; });
    const double right = support::spread_of(exact).mean;
    infty::require(right >= options.floor, "translation", form, " has a share of ", right,
                   " of the sentences right: --floor is ", options.floor);
  }
  return true;
}

std::optional<int> parse(int argc, char** argv, Options& options, Settings& settings) {
  CLI::App app("Encoder-decoders with memory, tried on a made translation task.", "translation");
  app.footer(
      "However it is stopped, the same command keeps the runs that are finished and goes on with "
      "the others; the table is that of an uninterrupted one.");
  support::add_runs(app, options.out, options.jobs);
  support::add_option(app, "--floor", options.floor,
                      "share of sentences that every form must have right, or the status is 1",
                      {0, 1})
      ->capture_default_str();
  support::add_saving(app, options.saving);
  support::add_options(app, settings);
  return support::parse(app, argc, argv);
}

}  // namespace translation

int main(int argc, char** argv) {
  return support::run_program("translation", [&] {
    translation::Options options;
    translation::Settings settings;
    if (const auto code = translation::parse(argc, argv, options, settings)) return *code;
    options.again = support::command_line(argc, argv);
    return translation::compare(settings, options) ? 0 : 1;
  });
}
