// SPDX-License-Identifier: MIT

// Learning a life long: a classifier of texts learns one task behind the other, in one pass, and is
// asked about all of them behind each. Every method learns the same streams, in several orders of
// their tasks and by several seeds. Texts are made, with known answers, or passages of the texts of
// a folder. The encoder begins from nothing, or has read such texts before, without answers.
//
// Runs go side by side, each in a process of its own. What is finished is in a file: the same
// command goes on wherever it was stopped, and begins those runs anew that were not finished.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <infty/eigen/parallel.hpp>

#include "../support/command.hpp"
#include "../support/farm.hpp"
#include "../support/lock.hpp"
#include "../support/options.hpp"
#include "../support/program.hpp"
#include "../support/progress_line.hpp"
#include "../support/saving.hpp"
#include "../support/shared_runs.hpp"
#include "need.hpp"
#include "report.hpp"

namespace lifelong {

struct Options {
  std::filesystem::path out = "lifelong-results";
  Index jobs = 2;
  support::RunShare share = {};  ///< of the runs
  std::string again = "";        ///< the command that goes on
};

/// Does all runs that are missing, and says of each that failed why; returns how many did. Of
/// several ranks each does its share, and the first waits for the others, unless one of its own has
/// failed. Throws support::Interrupted where a signal came.
/// @param steps  of each run
std::size_t do_missing(const Settings& s, Index steps, const Options& options,
                       support::RankMark& mark, Results& results) {
  std::vector<Run> all, runs;
  for (const std::string& method : s.methods)
    for (const Index order : s.orders)
      for (const std::uint64_t seed : s.seeds) all.push_back({method, order, seed});
  std::vector<std::string> every, names;
  for (const Run& run : all) every.push_back(run.name());
  for (const std::size_t i : options.share.missing(results, every)) {
    runs.push_back(all[i]);
    names.push_back(every[i]);
  }
  if (!runs.empty()) std::fprintf(stderr, "runs to do: %td\n", std::ssize(runs));
  const support::InterruptGuard interrupt;
  support::ProgressLine line("runs", std::ssize(runs) * steps, 0);
  Index learned = 0;
  std::set<std::string> failed;
  support::do_runs(
      results, names, options.jobs, line, failed,
      [&](std::size_t i, const auto& done) { return cell_of(runs[i], s, options.out, done); },
      [&](std::size_t, Index more) { line.update(learned += more); }, [](std::size_t) {});
  line.clear();
  const support::Stopping stop{"lifelong", options.out, options.again, mark};
  stop();
  if (options.share.first() && failed.empty())
    support::take_up(results, every, options.share, stop);
  return failed.size();
}

/// Has the encoder of the folder read what is left to read, of several ranks by the first. Returns
/// whether it has; where it has not, it has said why. Throws support::Interrupted where a signal
/// came.
bool read_first(const Settings& s, const Options& options, support::RankMark& mark) {
  if (s.pretrain == 0) return true;
  const support::InterruptGuard interrupt;
  const support::Stopping stop{"lifelong", options.out, options.again, mark};
  if (!options.share.first()) {
    support::wait_until([&] { return has_read(s, encoder_file(options.out)); },
                        [&] { stop("that reads beforehand", 0); });
    return true;
  }
  support::ProgressLine line("reading", s.pretrain, 0);
  Index read = 0;
  std::string failed;
  support::farm(
      {[&](const auto& done) { read_beforehand(s, encoder_file(options.out), done); }}, 1,
      [&](std::size_t, Index more) { line.update(read += more); },
      [&](std::size_t, const std::string& why) { failed = why; });
  line.clear();
  stop();
  if (!failed.empty()) std::fprintf(stderr, "lifelong: reading beforehand: %s\n", failed.c_str());
  return failed.empty();
}

/// Throws infty::IoError that names the first run whose accuracies are none of the stream's tasks,
/// or which read other texts.
void require_whole(const Results& results, const Stream& stream,
                   const std::filesystem::path& folder) {
  const auto tasks = std::ssize(stream.tasks);
  for (const auto& [name, cell] : results.all()) {
    bool whole = std::ssize(cell.tasks) == tasks && std::ssize(cell.matrix) == tasks;
    for (const auto& row : cell.matrix) {
      whole = whole && std::ssize(row) == tasks;
      for (const double accuracy : row) whole = whole && accuracy >= 0 && accuracy <= 1;
    }
    infty::require<infty::IoError>(whole, "lifelong", (folder / (name + ".json")).string(),
                                   ": its accuracies are not ", tasks, " of ", tasks, " tasks");
    infty::require<infty::IoError>(
        cell.texts == stream.texts, "lifelong", (folder / (name + ".json")).string(),
        ": its texts were not those that are given now, of fingerprint '", cell.texts, "', not '",
        stream.texts, "': give another --out");
  }
}

/// Returns whether all runs are done.
bool compare(const Settings& s, const Options& options) {
  validate(s);
  support::use_products(s.products);
  support::require_memory("lifelong", s, bytes_of);
  infty::set_num_threads(1);
  const Stream first =
      stream_of(s, s.seeds.front(), 1);  // refuses texts before anything is written
  require_episodes(s, first);
  const auto tasks = std::ssize(first.tasks);
  std::optional<support::Lock> lock;  // of the first rank, for it alone writes what is of all runs
  if (options.share.first()) lock.emplace(support::Lock::folder(options.out));
  support::require_same_settings("lifelong", s, options.out, {"methods", "orders", "seeds"});
  Results results("lifelong", options.out / "runs");
  require_whole(results, first, options.out / "runs");
  results.make();
  support::RankMark mark(options.share, options.out / "runs", support::to_json(s).dump());
  if (lock) {
    lock->remove_unfinished({"settings.json", "runs.csv", "table.md", "costs.md", "matrix.csv",
                             "matrix.gp", "encoder.safetensors"});
    if (options.share.alone()) results.clean();  // where no other rank writes
    support::write_file(options.out / "settings.json", support::to_json(s).dump(2) + '\n');
  }
  if (!read_first(s, options, mark)) return false;
  const std::size_t failed = do_missing(s, steps_of(s, first), options, mark, results);
  if (failed == 0) mark.done();
  if (!options.share.first() || (failed > 0 && !options.share.alone()))
    return support::none_failed("lifelong", failed);
  require_whole(results, first, options.out / "runs");
  results.clean();  // of what runs that were killed have left
  const std::string text = table(s, tasks, first.classes, results), cost = costs(s, results);
  support::write_file(options.out / "table.md", text);
  support::write_file(options.out / "costs.md", cost);
  support::write_file(options.out / "runs.csv", support::runs_csv(results));
  std::printf("%s\n%s", text.c_str(), cost.c_str());
  draw_matrix(s, tasks, results, options.out);
  std::fprintf(stderr,
               "%zu runs, %.0f s of computing; wrote runs.csv, table.md and costs.md to %s\n",
               results.all().size(), results.seconds(), options.out.c_str());
  return support::none_failed("lifelong", failed);
}

std::optional<int> parse(int argc, char** argv, Options& options, Settings& settings) {
  CLI::App app("Compares methods of lifelong learning on streams of tasks.", "lifelong");
  app.footer(
      "However it is stopped, the same command keeps the runs that are finished and does the "
      "others; "
      "the table is that of an uninterrupted comparison.");
  support::add_runs(app, options.out, options.jobs);
  support::add_options(app, settings);
  return support::parse(app, argc, argv);
}

}  // namespace lifelong

int main(int argc, char** argv) {
  return support::run_program("lifelong", [&] {
    lifelong::Options options;
    lifelong::Settings settings;
    if (const auto code = lifelong::parse(argc, argv, options, settings)) return *code;
    options.share = support::RunShare::own();
    options.again = support::command_on(options.share.ranks, support::command_line(argc, argv));
    return lifelong::compare(settings, options) ? 0 : 1;
  });
}
