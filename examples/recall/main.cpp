// SPDX-License-Identifier: MIT

// Tasks of recall with known answers, for every memory with states of as many bytes: copying
// symbols behind blanks, values by their keys, and sorting symbols by how often they came.
// Sequences are read segment by segment; then a last segment asks, from which alone the model
// learns.
//
// Every memory is tried with every learning rate and the first seed, and trained with the other
// seeds at the rate that was best on sequences set apart. What is reported is accuracy on others,
// mean and standard deviation over the seeds, at the end of training. Runs go side by side, a
// thread each, and are written to runs.csv one by one: when it is started again, a comparison that
// was interrupted goes on with the runs that are missing, and inside of those that were going on.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <infty/eigen/parallel.hpp>

#include "../support/command.hpp"
#include "../support/interrupt.hpp"
#include "../support/lock.hpp"
#include "../support/options.hpp"
#include "../support/program.hpp"
#include "../support/progress_line.hpp"
#include "../support/saving.hpp"
#include "../support/side_by_side.hpp"
#include "../support/warn_of.hpp"
#include "results.hpp"

namespace recall {

struct Options {
  std::filesystem::path out = "recall-results";
  Index jobs = 2;
  support::Saving saving = {};
  std::string again = "";  ///< the command that goes on
};

/// Where a run is saved until it is finished.
std::filesystem::path unfinished_of(const Options& options, const std::string& task,
                                    const std::string& memory, double rate, std::uint64_t seed) {
  std::string name = "unfinished-" + task + '-' + memory + '-' + nlohmann::json(rate).dump() + '-' +
                     std::to_string(seed) + ".safetensors";
  std::replace(name.begin(), name.end(), ' ', '-');
  return options.out / name;
}

/// A run that is to be done.
struct Planned {
  const Task* task;
  std::string memory;
  double rate;
  std::uint64_t seed;
};

/// What is missing of the runs that choose a rate, or, when these are done, of the others.
std::vector<Planned> missing(const Settings& s, const std::vector<Task>& tasks,
                             const Results& results, bool choosing) {
  std::vector<Planned> runs;
  const auto plan = [&](const Task& task, const std::string& memory, double rate,
                        std::uint64_t seed) {
    if (!results.find(task.name, memory, rate, seed)) runs.push_back({&task, memory, rate, seed});
  };
  for (const Task& task : tasks)
    for (const std::string& memory : s.memories)
      if (choosing)
        for (const double rate : s.rates) plan(task, memory, rate, s.seeds.front());
      else
        for (const std::uint64_t seed : s.seeds)
          plan(task, memory, results.best_rate(s, task.name, memory), seed);
  return runs;
}

/// Does the runs, so many at once, each in one thread. Throws support::Interrupted where a signal
/// came, when all that were going on are saved.
void run_all(const char* name, const Settings& s, const std::vector<Planned>& runs,
             const Options& options, Results& results) {
  const auto path_of = [&](const Planned& run) {
    return unfinished_of(options, run.task->name, run.memory, run.rate, run.seed);
  };
  support::side_by_side(
      name, std::ssize(runs), options.jobs, std::ssize(runs) * s.steps, "step",
      [&](Index i, auto&& done) {
        const Planned& planned = runs[static_cast<std::size_t>(i)];
        return run(s, *planned.task, planned.memory, planned.rate, planned.seed,
                   {path_of(planned), options.saving}, done);
      },
      [&](Index i, Cell cell) {
        results.add(std::move(cell));
        std::filesystem::remove(path_of(runs[static_cast<std::size_t>(i)]));
      });
  support::stop_if_interrupted([&] {
    return "stopped, all saved in " + options.out.string() + "; to go on: " + options.again;
  });
}

void compare(const Settings& s, const Options& options) {
  validate(s);
  for (const std::string& memory : s.memories) check_memory(s, memory);
  const std::vector<Task> tasks = tasks_of(s);
  {
    support::ProgressLine line("sizes", std::ssize(tasks) * std::ssize(s.memories), 0, "model");
    Index sized = 0;
    for (const Task& task : tasks)
      for (const std::string& memory : s.memories) {
        fitted(s, task, memory, s.seeds.front());
        line.update(++sized);
      }
  }
  if (std::ranges::any_of(s.memories, [](const auto& m) { return m.starts_with("infty"); })) {
    infty::LongTermConfig memory = s.long_term;
    memory.basis =
        std::ssize(memory.widths) *
        (static_cast<Index>(s.share * static_cast<double>(s.vectors)) / std::ssize(memory.widths));
    support::warn_of("recall", memory, s.segment);
  }
  const auto lock = support::Lock::folder(options.out);
  support::require_same_settings("recall", s, options.out,
                                 {"memories", "tasks", "lengths", "rates", "seeds"});
  Results results(options.out / "runs.csv");
  lock.remove_unfinished({"settings.json", "runs.csv", "table.md"});
  support::write_file(options.out / "settings.json", support::to_json(s).dump(2) + '\n');
  // What a kill between a run's line and the removal of its checkpoint has left.
  for (const Cell& cell : results.all())
    std::filesystem::remove(unfinished_of(options, cell.task, cell.memory, cell.rate, cell.seed));
  infty::set_num_threads(1);
  const support::InterruptGuard interrupt;
  for (const bool choosing : {true, false}) {
    const auto runs = missing(s, tasks, results, choosing);
    for (const Planned& run : runs)
      infty::detail::remove_unfinished(
          unfinished_of(options, run.task->name, run.memory, run.rate, run.seed));
    run_all(choosing ? "rates" : "seeds", s, runs, options, results);
  }
  const std::string text = table(s, tasks, results);
  support::write_file(options.out / "table.md", text);
  std::printf("%s", text.c_str());
  double seconds = 0;
  for (const Cell& cell : results.all()) seconds += cell.seconds;
  std::fprintf(stderr, "%lld runs, %.0f s of computing; wrote runs.csv and table.md to %s\n",
               static_cast<long long>(results.all().size()), seconds, options.out.c_str());
}

std::optional<int> parse(int argc, char** argv, Options& options, Settings& settings) {
  CLI::App app("Compares memories by tasks of recall, at states of as many bytes.", "recall");
  app.footer(
      "However it is stopped, the same command keeps the runs that are finished and goes on with "
      "the others; the table is that of an uninterrupted comparison.");
  app.add_option("--out", options.out, "folder for results; goes on where it has stopped there")
      ->capture_default_str();
  support::add_option(app, "--jobs", options.jobs, "runs side by side, a thread each",
                      {1, support::most_at_once})
      ->capture_default_str();
  support::add_saving(app, options.saving);
  support::add_options(app, settings);
  return support::parse(app, argc, argv);
}

}  // namespace recall

int main(int argc, char** argv) {
  return support::run_program("recall", [&] {
    recall::Options options;
    recall::Settings settings;
    if (const auto code = recall::parse(argc, argv, options, settings)) return *code;
    options.again = support::command_line(argc, argv);
    recall::compare(settings, options);
    return 0;
  });
}
