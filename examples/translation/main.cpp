// SPDX-License-Identifier: MIT

// Encoder-decoders on a made translation task whose right answer is known: a plain transformer, the
// Memory Transformer's form, MemSizer's and Memformer's, of one model with other parts.
//
// Every form is trained with every seed, then translates sentences that it has not been trained on,
// by the likeliest token and by beam search. What is reported is the share of right tokens and of
// right sentences, mean and standard deviation over the seeds. Runs go side by side, a thread each,
// and are written to runs.json one by one: when it is started again, what was interrupted goes on.

#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
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
#include "run.hpp"

namespace translation {

struct Options {
  std::filesystem::path out = "translation-results";
  Index jobs = 2;
  double floor = 0;  ///< share of sentences that every form is to have right
  support::Saving saving = {};
  std::string again = "";  ///< the command that goes on
};

/// Where a run is saved until it is finished.
std::filesystem::path unfinished_of(const Options& options, const std::string& form,
                                    std::uint64_t seed) {
  return options.out / ("unfinished-" + form + '-' + std::to_string(seed) + ".safetensors");
}

/// Does the runs that are missing, so many at once, each in one thread. Throws support::Interrupted
/// where a signal came, when all that were going on are saved.
void run_all(const Settings& s, const Options& options, Runs& runs) {
  std::vector<std::pair<std::string, std::uint64_t>> missing;
  for (const std::uint64_t seed : s.seeds)
    for (const std::string& form : s.forms) {
      const auto path = unfinished_of(options, form, seed);
      infty::detail::remove_unfinished(path);
      if (runs.find(form, seed))
        std::filesystem::remove(path);  // what a kill has left
      else
        missing.emplace_back(form, seed);
    }
  support::ProgressLine line("train", std::ssize(missing) * s.steps, 0);
  std::atomic<std::size_t> next = 0;
  std::atomic<Index> steps = 0;
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::size_t i; (i = next++) < missing.size();) {
        const auto& [form, seed] = missing[i];
        const auto path = unfinished_of(options, form, seed);
        Run run = train(s, form, seed, path, options.saving, [&](Index more) {
          const Index all = steps += more;
          const std::lock_guard lock(mutex);
          if (all == steps) line.update(all, {});
        });
        const std::lock_guard lock(mutex);
        runs.add(std::move(run));
        std::filesystem::remove(path);
      }
    } catch (const support::Interrupted&) {
      next = missing.size();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next = missing.size();
    }
  };
  std::vector<std::thread> threads;
  const Index count = std::min(options.jobs, static_cast<Index>(std::ssize(missing)));
  for (Index i = 0; i < count; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  support::stop_if_interrupted([&] {
    return "stopped, all saved in " + options.out.string() + "; to go on: " + options.again;
  });
}

/// Throws infty::ValueError that names the first setting that differs from those of the runs in the
/// folder, if there are any, but for the forms and the seeds.
void require_same_settings(const Settings& s, const std::filesystem::path& folder) {
  const auto path = folder / "settings.json";
  if (!std::filesystem::exists(path)) return;
  const auto asked = support::to_json(s);
  const auto there =
      support::to_json(support::settings_from<Settings>(support::read_json(path), path.string()));
  const std::set<std::string> free{"forms", "seeds"};
  for (const auto& [name, value] : asked.items())
    infty::require(free.contains(name) || there.at(name) == value, "translation", folder.string(),
                   " holds runs with --", name, ' ', there.at(name).dump(), ", not ", value.dump(),
                   ": give another --out");
}

void compare(const Settings& s, const Options& options) {
  validate(s);
  const auto lock = support::Lock::folder(options.out);
  require_same_settings(s, options.out);
  Runs runs(options.out / "runs.json");
  lock.remove_unfinished({"settings.json", "runs.json", "table.md"});
  support::write_file(options.out / "settings.json", support::to_json(s).dump(2) + '\n');
  infty::set_num_threads(1);
  const support::InterruptGuard interrupt;
  run_all(s, options, runs);
  const std::string text = table(s, runs);
  support::write_file(options.out / "table.md", text);
  std::printf("%s", text.c_str());
  double seconds = 0;
  for (const std::string& form : s.forms)
    for (const double x : of_seeds(s, runs, form, [](const Run& run) { return run.seconds; }))
      seconds += x;
  std::fprintf(stderr, "%.0f s of computing; wrote runs.json and table.md to %s\n", seconds,
               options.out.c_str());
  for (const std::string& form : s.forms) {
    const double right =
        mean_of(of_seeds(s, runs, form, [](const Run& run) { return run.beam.exact; }));
    infty::require(right >= options.floor, "translation", form, " has a share of ", right,
                   " of the sentences right: --floor is ", options.floor);
  }
}

std::optional<int> parse(int argc, char** argv, Options& options, Settings& settings) {
  CLI::App app("Encoder-decoders with memory, tried on a made translation task.", "translation");
  app.footer(
      "However it is stopped, the same command keeps the runs that are finished and goes on with "
      "the others; the table is that of an uninterrupted one.");
  app.add_option("--out", options.out, "folder for results; goes on where it has stopped there")
      ->capture_default_str();
  support::add_option(app, "--jobs", options.jobs, "runs side by side, a thread each",
                      {1, support::most_at_once})
      ->capture_default_str();
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
    translation::compare(settings, options);
    return 0;
  });
}
