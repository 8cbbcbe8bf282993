// SPDX-License-Identifier: MIT

// The sorting task of the ∞-former [Martins et al. 2022, §4.1]: a model reads a long sequence of
// symbols segment by segment, then says all symbols by falling frequency. The end of a sequence
// does not tell its beginning, so a model that remembers only the last segments cannot know.
//
// This program trains the models named by --models on fresh sequences, evaluates them on others,
// under teacher forcing (each prediction sees the true symbols before it) and in free generation
// (each sees the model's own), and compares them with counting and guessing. It writes
// results.json, curves.csv, attention.csv and a figure.
//
// Told --lengths, or a model that only makes sense beside others, it compares: every model at
// every length with several seeds, as the paper's Fig. 3, left, does (comparison.hpp).
//
// --backend chooses what computes; the random numbers are the same on all, the results but for the
// rounding of floats.
//
// It does not search for settings, keep the best of several models, or mask symbols that have been
// said: what is reported is the model at the end of training.

#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>

#include <infty/eigen/parallel.hpp>

#include "../support/command.hpp"
#include "../support/interrupt.hpp"
#include "../support/lock.hpp"
#include "../support/options.hpp"
#include "../support/program.hpp"
#include "../support/progress_line.hpp"
#include "../support/ranks.hpp"
#include "../support/saving.hpp"
#include "../support/settings.hpp"
#include "../support/signals.hpp"
#include "../support/warn_of.hpp"
#include "backends.hpp"
#include "checkpoint.hpp"
#include "comparison.hpp"
#include "report.hpp"

namespace sorting {

bool is_done(const Finished& finished, const std::string& name) {
  for (const ModelResult& result : finished.results)
    if (result.name == name) return true;
  return false;
}

/// What trains a model on the backend that was asked for. Throws infty::Error that says what to do
/// if it is not in this program.
RunModel* runner_of(const Options& options, const Settings& settings, const std::string& name) {
  const bool gaussian = settings.density == "gaussian";
  if (support::writes_blocks(memory_word(name), settings.contraction)) {
    infty::require<infty::Error>(
        options.backend == "eigen" && gaussian && settings.functions == "gaussian", "sorting",
        "--contraction ", contraction_of(settings, name),
        " is in this program for --backend eigen, --density gaussian and "
        "--functions gaussian");
    return run_eigen_blocks;
  }
  if (settings.functions != "gaussian") {
    infty::require<infty::Error>(options.backend == "eigen", "sorting", "--functions ",
                                 settings.functions, " is in this program for --backend eigen");
    return settings.functions == "fourier" ? run_eigen_fourier
           : settings.functions == "power" ? run_eigen_power
                                           : run_eigen_rectangular;
  }
  if (options.backend == "eigen") return gaussian ? run_eigen_gaussian : run_eigen_parabola;
  if (options.backend == "thrust") {
#if defined(INFTY_WITH_THRUST)
    return gaussian ? run_thrust_gaussian : run_thrust_parabola;
#else
    infty::raise<infty::Error>("sorting",
                               "--backend thrust is not in this program: install the Thrust "
                               "headers (CUDA Toolkit, or Debian's libthrust-dev) and build again");
#endif
  }
#if defined(INFTY_WITH_CUDA)
  return gaussian ? run_cuda_gaussian : run_cuda_parabola;
#else
  infty::raise<infty::Error>("sorting",
                             "--backend cuda is not in this program: build it with "
                             "-DINFTY_CUDA=ON");
#endif
}

/// What the backend works on.
std::string device_of(const Options& options) {
#if defined(INFTY_WITH_CUDA)
  if (options.backend == "cuda") return use_gpu(options.device);
#endif
  return options.backend == "eigen" || options.backend == "thrust" ? "CPU" : "";
}

/// What the report compares models with, on the first rank, which alone counts; on others nothing.
/// Before all training, so that a signal meanwhile costs none.
std::vector<Floor> counted_floors(const Settings& settings, infty::AnyCommunicator& ranks) {
  std::vector<Floor> floors;
  if (ranks.rank() == 0) {
    const Index all = std::ssize(counters_of(settings)) * settings.evaluation_sequences;
    support::ProgressLine line("floors", all, 0, "sequence");
    try {
      floors = floors_of(settings, [&](Index done) {
        line.update(done);
        support::stop_if_interrupted([] { return std::string(); });
      });
    } catch (const support::Interrupted&) {  // which all ranks are told below
    }
  }
  ranks.barrier();  // or those who wait would say what they knew when they began to
  if (const int signal = support::signal_of_all(ranks); signal != 0)
    throw support::Interrupted(signal,
                               "stopped counting the floors, before any training: the same "
                               "command begins again");
  return floors;
}

void run(Options options, Settings settings, infty::AnyCommunicator& ranks) {
  options.ranks = ranks;
  const bool first = ranks.rank() == 0;  // which alone writes
  const auto require_runners = [&] {
    infty::require(settings.products == "float32" || options.backend == "eigen", "sorting",
                   "--products bfloat16 goes with --backend eigen: others multiply in full");
    for (const std::string& name : settings.models) runner_of(options, settings, name);
  };
  if (options.resume.empty()) {
    validate(settings);
    require_runners();
  }
  if (options.save.empty()) options.save = options.resume;
  std::optional<support::Lock> lock, of_checkpoint;
  std::error_code none;
  infty::require(!std::filesystem::is_directory(options.save, none), "sorting", "--save ",
                 options.save, " is a folder: it must be a file");
  require_own_results(options.out);
  if (first) lock.emplace(support::Lock::folder(options.out));
  if (first && !options.save.empty()) {
    of_checkpoint.emplace(support::Lock::file(options.save));
    infty::require(!std::filesystem::exists(options.save) ||
                       std::filesystem::equivalent(options.save, options.resume, none),
                   "sorting", "--save ", options.save, " is there already: --resume ", options.save,
                   " goes on from it; remove it to begin anew");
  }
  const auto interrupted = interrupted_of(options);
  ranks.barrier();
  infty::require(!options.save.empty() || !std::filesystem::exists(interrupted), "sorting",
                 interrupted.string(), " is of a run that was stopped: --resume ",
                 interrupted.string(), " goes on from it; remove it to begin anew");
  Finished finished;
  if (!options.resume.empty()) finished = load_checkpoint(options, settings);
  require_runners();
  support::use_products(settings.products);
  support::require_shards("sorting", ranks, settings.shards);
  if (ranks.size() > 1) {
    infty::require_same(ranks, "the program", support::program_fingerprint());
    infty::require_same(ranks, "--backend", options.backend);
    infty::require_same(ranks, "the settings",
                        support::to_json(settings).dump() + options.sharing.text());
    infty::require_same(ranks, "the checkpoint",
                        options.resume.empty() ? "" : infty::MappedFile(options.resume).text());
    // All save together, or none does; where, the first rank alone decides.
    infty::require_same(ranks, "--save, given or left out,", options.save.empty() ? "no" : "yes");
  }
  const std::string device = device_of(options);
  if (first) lock->remove_unfinished({"results.json", "curves.csv", "attention.csv", "figure.gp"});
  if (of_checkpoint)
    of_checkpoint->remove_unfinished({std::filesystem::path(options.save).filename().string()});
  const support::InterruptGuard interrupt;  // until none waits for another any more
  const std::vector<Floor> floors = counted_floors(settings, ranks);
  for (const std::string& name : settings.models) {
    if (is_done(finished, name)) continue;
    if (const auto memory = memory_config(settings, name).memory;
        memory && settings.functions == "gaussian" && contraction_of(settings, name) == "fixed")
      support::warn_of("sorting", *memory, settings.segment);
    if (!runner_of(options, settings, name)(options, settings, name, finished)) return;
  }
  if (first) {
    const Report report{settings, finished.results, floors, options.backend, device};
    print_results(report);
    print_costs(report);
    write_report(report, options.out);
    if (!options.save.empty() && std::filesystem::equivalent(options.save, interrupted, none))
      std::filesystem::remove(interrupted);
  }
  ranks.barrier();
}

/// Throws CLI::ParseError for the first option that is not of a comparison, or only of one, where
/// the others say something else.
void require_of_one_kind(const CLI::App& app, bool comparison) {
  for (const char* const name :
       {"--seed", "--length", "--functions", "--density", "--sticky", "--evaluation-seed", "--bins",
        "--paper", "--resume", "--save", "--stop-at", "--threads", "--backend", "--device",
        "--shards", "--reduce", "--silence", "--bucket", "--zero"})
    if (comparison && !app.get_option(name)->empty())
      throw CLI::ValidationError(std::string(name) +
                                 " is not of a comparison at several lengths: leave it out, or "
                                 "--lengths, xl and compressive");
  for (const char* const name : {"--seeds", "--compression-rates", "--auxiliary-weights", "--jobs"})
    if (!comparison && !app.get_option(name)->empty()) throw CLI::RequiresError(name, "--lengths");
}

/// What the command line says.
struct CommandLine {
  Options options;
  Settings settings;
  Compared compared;
  Index jobs = ComparisonOptions{}.jobs;
};

/// Reads the command line; a number if the program is to end with it.
std::optional<int> parse(int argc, char** argv, CommandLine& line) {
  Options& options = line.options;
  Settings& settings = line.settings;
  CLI::App app("Trains models with and without long-term memory on the sorting task.", "sorting");
  using support::add_option, support::from;
  CLI::Option* const resume =
      app.add_option("--resume", options.resume,
                     "go on from this checkpoint, with its settings; saves there unless --save")
          ->check(CLI::ExistingFile);
  CLI::Option* const paper =
      add_option(app, "--paper", options.paper,
                 "start from the paper's settings for this length, not the demo's")
          ->type_name("INT:{4000,8000,16000}")
          ->excludes(resume);
  app.add_option("--out", options.out, "folder for results")->capture_default_str();
  CLI::Option* const save = app.add_option("--save", options.save, "checkpoint to write");
  support::add_saving(app, options.saving);
  support::add_ranks(app, options.sharing);
  add_option(app, "--stop-at", options.stop_at, "save and stop before this step of a model",
             from(1));
  add_option(app, "--threads", options.threads, "results do not depend on it",
             {1, support::most_at_once});
  app.add_option("--backend", options.backend,
                 "what computes: eigen (CPU), thrust (CPU, the GPU's code), cuda (NVIDIA GPU)")
      ->capture_default_str()
      ->check(CLI::IsMember({"eigen", "thrust", "cuda"}));
  CLI::Option* const device =
      add_option(app, "--device", options.device, "number of the GPU, for --backend cuda", {0})
          ->capture_default_str();
  const auto of_settings = support::add_options(app, settings);
  support::add_options(app, line.compared);
  add_option(app, "--jobs", line.jobs, "runs side by side, a process each",
             {1, support::most_at_once})
      ->capture_default_str()
      ->group("Comparing models at several lengths");
  return support::parse(app, argc, argv, [&] {
    if (!paper->empty() && options.paper != 4000 && options.paper != 8000 && options.paper != 16000)
      throw CLI::ValidationError("--paper is " + std::to_string(options.paper) +
                                 ": it must be 4000, 8000 or 16000");
    for (const CLI::Option* const option : of_settings)
      if (!resume->empty() && !option->empty())
        throw CLI::ExcludesError("--resume", option->get_name());
    if (options.stop_at > 0 && save->empty() && resume->empty())
      throw CLI::RequiresError("--stop-at", "--save or --resume");
    if (!device->empty() && options.backend != "cuda")
      throw CLI::RequiresError("--device", "--backend cuda");
    require_of_one_kind(app, is_comparison(settings, line.compared));
  });
}

}  // namespace sorting

int main(int argc, char** argv) {
  return support::run_program("sorting", [&] {
    sorting::CommandLine line;
    line.options.program = support::command_line(1, argv);
    if (const auto code = sorting::parse(argc, argv, line)) return *code;
    // Once more behind other defaults, so that other options change them whatever their order.
    if (is_comparison(line.settings, line.compared)) {
      infty::require(support::ranks_started() <= 1, "sorting",
                     "several ranks train, and do nothing else");
      const sorting::ComparisonSettings defaults;
      line.settings = defaults.base;
      line.compared = defaults.compared;
      if (const auto code = sorting::parse(argc, argv, line)) return *code;
#if defined(INFTY_WITH_COMPARISON)
      return sorting::compare({line.settings, line.compared},
                              {.out = line.options.out,
                               .jobs = line.jobs,
                               .saving = line.options.saving,
                               .again = support::command_line(argc, argv)})
                 ? 0
                 : 1;
#else
      infty::raise<infty::Error>("sorting",
                                 "comparisons are not in this program: build it with "
                                 "-DINFTY_SORTING_COMPARISON=ON");
#endif
    }
    if (line.options.paper > 0) {
      line.settings = sorting::paper_settings(line.options.paper);
      if (const auto code = sorting::parse(argc, argv, line)) return *code;
    }
    if (line.options.threads > 0) infty::set_num_threads(line.options.threads);
    return support::on_ranks("sorting", line.options.sharing.silence, line.options.threads,
                             [&](infty::AnyCommunicator& ranks) {
                               sorting::run(line.options, line.settings, ranks);
                               return 0;
                             });
  });
}
