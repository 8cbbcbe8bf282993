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
// It does not search for settings, keep the best of several models, or mask symbols that have been
// said: what is reported is the model at the end of training.

#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>

#include <infty/eigen/parallel.hpp>

#include "report.hpp"
#include "run.hpp"

namespace sorting {

bool is_done(const Finished& finished, const std::string& name) {
  for (const ModelResult& result : finished.results)
    if (result.name == name) return true;
  return false;
}

void run(Options options, Settings settings) {
  Finished finished;
  if (!options.resume.empty()) {
    finished = load_checkpoint(options, settings);
    if (options.save.empty()) options.save = options.resume;
  }
  validate(settings);
  prepare_folder(options.out);
  if (options.threads > 0) infty::set_num_threads(options.threads);
  for (const std::string& name : settings.models) {
    if (is_done(finished, name)) continue;
    const bool done = settings.density == "gaussian"
                          ? run_model<infty::GaussianDensity>(options, settings, name, finished)
                          : run_model<infty::TruncatedParabola>(options, settings, name, finished);
    if (done) continue;
    std::fprintf(stderr, "stopped before step %lld of %s; to go on: --resume %s\n",
                 static_cast<long long>(options.stop_at), name.c_str(), options.save.c_str());
    return;
  }
  const Report report{settings, finished.results, floors_of(settings)};
  print_results(report);
  print_costs(report);
  write_report(report, options.out);
}

/// One option of the command line for every setting, in its group; returns them.
std::vector<CLI::Option*> add_options(CLI::App& app, Settings& settings) {
  std::vector<CLI::Option*> options;
  each_setting(settings, [&]<class T>(const char* group, const char* name, T& field,
                                      const char* help, const auto&... choices) {
    CLI::Option* const option = app.add_option(std::string("--") + name, field, help);
    option->capture_default_str()->group(group);
    if constexpr (!std::is_same_v<T, std::string> && requires { field.front(); })
      option->delimiter(',')->expected(1, 64);
    if constexpr (sizeof...(choices) > 0)
      option->check(CLI::IsMember(std::vector<std::string>{choices...}));
    options.push_back(option);
  });
  return options;
}

/// Reads the command line into options and settings; a number if the program is to end with it.
std::optional<int> parse(int argc, char** argv, Options& options, Settings& settings) {
  CLI::App app("Trains models with and without long-term memory on the sorting task.", "sorting");
  CLI::Option* const resume =
      app.add_option("--resume", options.resume,
                     "go on from this checkpoint, with its settings; saves there unless --save")
          ->check(CLI::ExistingFile);
  app.add_option("--paper", options.paper,
                 "start from the paper's settings for this length, not the demo's")
      ->check(CLI::IsMember({4000, 8000, 16000}))
      ->excludes(resume);
  app.add_option("--out", options.out, "folder for results")->capture_default_str();
  CLI::Option* const save = app.add_option("--save", options.save, "checkpoint to write");
  app.add_option("--save-every", options.save_every, "steps between checkpoints")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--stop-at", options.stop_at, "save and stop before this step of a model")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "results do not depend on it")
      ->check(CLI::PositiveNumber);
  const auto of_settings = add_options(app, settings);
  try {
    app.parse(argc, argv);
    for (const CLI::Option* const option : of_settings)
      if (!resume->empty() && !option->empty())
        throw CLI::ExcludesError("--resume", option->get_name());
    if (options.stop_at > 0 && save->empty() && resume->empty())
      throw CLI::RequiresError("--stop-at", "--save or --resume");
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return std::nullopt;
}

}  // namespace sorting

int main(int argc, char** argv) {
  try {
    sorting::Options options;
    sorting::Settings settings;
    if (const auto code = sorting::parse(argc, argv, options, settings)) return *code;
    if (options.paper > 0) {
      // Once more, so that other options change the paper's settings whatever their order.
      settings = sorting::paper_settings(options.paper);
      if (const auto code = sorting::parse(argc, argv, options, settings)) return *code;
    }
    sorting::run(options, settings);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sorting: %s\n", error.what());
    return 1;
  }
}
