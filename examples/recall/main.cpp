// SPDX-License-Identifier: MIT

// Tasks of recall with known answers, for every memory with states of as many bytes. Every memory
// is tried with every learning rate, some with several taus, and the first seed, and trained with
// the other seeds by what was best on sequences set apart; the figure has it at other sizes, too.
// What is reported is accuracy on other sequences, at the end of training.
//
// Runs go side by side, each in a process of its own. What is finished is in a file, and what is
// not has a checkpoint: the same command goes on wherever it was stopped.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <infty/eigen/parallel.hpp>
#include <infty/train/progress.hpp>

#include "../support/command.hpp"
#include "../support/finished_runs.hpp"
#include "../support/interrupt.hpp"
#include "../support/json.hpp"
#include "../support/lock.hpp"
#include "../support/options.hpp"
#include "../support/program.hpp"
#include "../support/progress_line.hpp"
#include "../support/saving.hpp"
#include "../support/shared_runs.hpp"
#include "../support/warn_of.hpp"
#include "curves.hpp"
#include "distance_figure.hpp"

namespace recall {

struct Options {
  std::filesystem::path out = "recall-results";
  Index jobs = 2;
  support::Saving saving = {};
  support::RunShare share = {};  ///< of the runs
  std::string again = "";        ///< the command that goes on
};

/// Does all runs that are missing. Says beforehand how long that takes, and of each that failed
/// why; returns how many did. Of several ranks each does its share, and waits for the others before
/// what is best is chosen; one of whose runs has failed leaves the rest. Throws
/// support::Interrupted where a signal came, when all that were going on are saved.
std::size_t do_missing(const Settings& s, const std::vector<Task>& tasks, const Sizes& sizes,
                       const Options& options, support::RankMark& mark, Results& results) {
  auto all = missing(s, tasks, sizes, results, true);
  const auto later = expected(s, tasks, sizes, results);
  all.insert(all.end(), later.begin(), later.end());
  const Costs costs(s, all);
  const double seconds = costs.all(all);
  const Index at_once = options.jobs * options.share.ranks;
  if (!all.empty() && options.share.first())
    std::fprintf(stderr, "runs to do: %td, about %s of computing, %s with %lld side by side\n",
                 std::ssize(all), infty::format_duration(seconds).c_str(),
                 infty::format_duration(seconds / static_cast<double>(at_once)).c_str(),
                 static_cast<long long>(at_once));
  double own = 0;  // of this rank's share, as far as it is known
  for (const bool choosing : {true, false}) {
    const auto kind = planned(s, tasks, sizes, results, choosing);
    for (const std::size_t i : options.share.missing(results, names_of(kind)))
      if (choosing || !is_tried(s, kind[i].run)) own += costs.run(kind[i]);
  }
  const support::InterruptGuard interrupt;
  const Index total = static_cast<Index>(own) + 1;
  support::ProgressLine line("runs", total, 0, "second");
  double before = 0;  // of runs that have ended
  Index ended = 0;
  std::set<std::string> failed;
  for (const bool choosing : {true, false}) {
    std::vector<std::string> names;
    std::vector<Planned> runs;
    const auto kind = planned(s, tasks, sizes, results, choosing);
    const auto every = names_of(kind);
    for (const std::size_t i : options.share.missing(results, every))
      if (!failed.contains(every[i])) {
        runs.push_back(kind[i]);
        names.push_back(every[i]);
      }
    std::vector<double> going(runs.size());
    double within = 0;
    const auto tell = [&] {
      line.update(std::min(total, static_cast<Index>(before + within)),
                  {{"runs done", static_cast<double>(ended)}});
    };
    support::do_runs(
        results, names, options.jobs, line, failed,
        [&](std::size_t i, const auto& done) {
          return cell_of(runs[i].run, s, *runs[i].task, *runs[i].size,
                         {results.checkpoint(names[i]), options.saving}, done);
        },
        [&](std::size_t i, Index steps) {
          const double more = static_cast<double>(steps) * costs.step(runs[i]);
          going[i] += more;
          within += more;
          tell();
        },
        [&](std::size_t i) {
          before += costs.run(runs[i]);
          within -= going[i];
          ++ended;
          tell();
        });
    support::stop_if_interrupted(options.out, options.again);
    if (options.share.alone()) continue;
    if (!failed.empty()) break;
    if (choosing || options.share.first()) {
      line.clear();
      support::take_up(results, every, options.share,
                       support::Stopping{"recall", options.out, options.again, mark});
    }
  }
  return failed.size();
}

/// Says what the ∞-former's memory cannot keep, if it is compared with the papers' contraction.
void warn(const Settings& s, const Sizes& sizes) {
  for (const auto& [key, size] : sizes)
    if (support::is_infty(key.memory) && key.bytes == s.bytes && !is_swept(word_of(key.memory)) &&
        support::contraction_of(key.memory, s.contraction) == "fixed") {
      infty::LongTermConfig memory = s.long_term;
      memory.basis = size.config.compressed;
      support::warn_of("recall", memory, s.segment);
      return;
    }
}

/// Returns whether all runs are done.
bool compare(const Settings& s, const Options& options) {
  validate(s);
  support::use_products(s.products);
  check_memory(s, "xl");  // by whose state all are measured
  for (const std::string& memory : s.memories) check_memory(s, memory);
  infty::require(vectors_of(s, s.bytes) >= 1, "recall", "--bytes is ", s.bytes,
                 ": they are less than a vector in every layer");
  const std::vector<Task> tasks = tasks_of(s);
  std::optional<support::Lock> lock;  // of the first rank, for it alone writes what is of all runs
  if (options.share.first()) lock.emplace(support::Lock::folder(options.out));
  support::require_same_settings("recall", s, options.out,
                                 {"memories", "tasks", "lengths", "rates", "mqar-mix-rates", "taus",
                                  "seeds", "curve-tasks", "mqar-lengths", "curve-bytes", "bytes"});
  Results results(options.out / "runs");
  results.make();
  support::RankMark mark(options.share, options.out / "runs", support::to_json(s).dump());
  infty::set_num_threads(1);
  const Sizes sizes = sizes_of(s, tasks);
  if (lock) {
    warn(s, sizes);
    lock->remove_unfinished({"settings.json", "runs.csv", "table.md", "curves.csv", "curves.gp"});
    if (options.share.alone()) results.clean();  // where no other rank writes
    support::write_file(options.out / "settings.json", support::to_json(s).dump(2) + '\n');
  }
  const std::size_t failed = do_missing(s, tasks, sizes, options, mark, results);
  if (failed == 0) mark.done();
  if (!options.share.first() || (failed > 0 && !options.share.alone()))
    return support::none_failed("recall", failed);
  results.clean();  // of what runs that were killed have left
  const std::string text = table(s, tasks, sizes, results);
  support::write_file(options.out / "table.md", text);
  support::write_file(options.out / "runs.csv", support::runs_csv(results));
  std::printf("%s", text.c_str());
  if (std::ranges::any_of(tasks, [&](const Task& task) { return in_curves(s, task); }))
    draw_curves(s, tasks, results, options.out);
  draw_distances(s, tasks, results, options.out);
  std::fprintf(stderr, "%zu runs, %.0f s of computing; wrote runs.csv and table.md to %s\n",
               results.all().size(), results.seconds(), options.out.c_str());
  return support::none_failed("recall", failed);
}

std::optional<int> parse(int argc, char** argv, Options& options, Settings& settings) {
  CLI::App app("Compares memories by tasks of recall, at states of as many bytes.", "recall");
  app.footer(
      "However it is stopped, the same command keeps the runs that are finished and goes on with "
      "the others; the table is that of an uninterrupted comparison.");
  support::add_runs(app, options.out, options.jobs);
  app.add_flag("--quick", quick_help);
  support::add_saving(app, options.saving);
  support::add_options(app, settings);
  return support::parse(app, argc, argv);
}

}  // namespace recall

int main(int argc, char** argv) {
  return support::run_program("recall", [&] {
    recall::Options options;
    const bool quick = std::count(argv + 1, argv + argc, std::string_view("--quick")) > 0;
    recall::Settings settings = quick ? recall::quick_settings() : recall::Settings();
    if (const auto code = recall::parse(argc, argv, options, settings)) return *code;
    if (settings.zoology) {  // which is other defaults: what is said beside it counts
      settings = recall::published(quick ? recall::quick_settings() : recall::Settings());
      recall::parse(argc, argv, options, settings);
    }
    options.share = support::RunShare::own();
    options.again = support::command_on(options.share.ranks, support::command_line(argc, argv));
    return recall::compare(settings, options) ? 0 : 1;
  });
}
