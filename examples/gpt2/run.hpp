// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <type_traits>

#include "../support/files.hpp"
#include "../support/interrupt.hpp"
#include "../support/language_model/log.hpp"
#include "../support/lock.hpp"
#include "../support/running_mean.hpp"
#include "results.hpp"
#include "training.hpp"

// A training in a folder, which in the end is that of the trained model.

namespace gpt2 {

/// What decides where results go and when, but not what they are.
struct RunOptions {
  std::filesystem::path out = "gpt2-run";
  support::Saving saving = {};
  double pause = 0;        ///< seconds to wait behind every step, for tests
  bool fresh = false;      ///< whether what is in the folder is to be replaced
  std::string again = "";  ///< the command that goes on with the run
};

/// Whether a setting follows from others, and is not compared.
template <class Job>
bool follows(const Job& s, const std::string& name) {
  return name == "steps" && (s.hours > 0 || s.epochs > 0);
}

/// The settings with the steps of a run of the same settings. Throws infty::ValueError that names
/// the first setting in which that differs.
template <class Job>
Job as_there(Job s, const nlohmann::json& there, const std::filesystem::path& folder,
             const std::string& where) {
  constexpr bool finetunes = std::is_same_v<Job, Finetuning>;
  // What only the other job has.
  infty::require(!there.contains(finetunes ? "encoding" : "freeze"), "gpt2", folder.string(),
                 " holds a run of ", finetunes ? "pretrain" : "finetune",
                 ": give another --out, or --fresh to begin anew");
  const Job of_run = support::settings_from<Job>(there, where);
  const auto asked = support::to_json(s), known = support::to_json(of_run);
  for (const auto& [name, value] : asked.items())
    infty::require(follows(s, name) || known.at(name) == value, "gpt2", folder.string(),
                   " holds a run with --", name, ' ', known.at(name).dump(), ", not ", value.dump(),
                   ": give another --out, or --fresh to begin anew");
  s.steps = of_run.steps;
  return s;
}

/// Gnuplot commands that draw figure.png of log.csv.
inline std::string training_figure(const std::string& title, bool validated) {
  const std::string window = std::to_string(support::RunningMean::window);
  return "set terminal pngcairo size 800,480 font 'sans,11'\n"
         "set output 'figure.png'\nset datafile separator ','\nset border 3\n"
         "set tics nomirror out\nset key top right\nset grid y lc '#dddddd'\n"
         "set title '" +
         title +
         "'\nset xlabel 'step'\nset ylabel 'loss in nats a token'\n"
         "weight = 0\nmean = 0\nkept = 1 - 1. / " +
         window +
         "\nsmooth(x) = (weight = weight * kept + 1, mean = mean + (x - mean) / weight)\n"
         "plot 'log.csv' using 1:4 skip 1 with points pt 7 ps .2 lc '#e8b89a' title 'segments', "
         "\\\n"
         "  '' using 1:(smooth($4)) skip 1 with lines lw 2 lc '#c2410c' \\\n"
         "  title 'their exponentially weighted mean, window of " +
         window + " steps'" +
         (validated ? ", \\\n  '' using 1:9 skip 1 with linespoints pt 7 lw 2 lc '#1d4ed8' \\\n"
                      "  title 'validation text'\n"
                    : "\n");
}

/// A number as short as it can be read back.
inline std::string number(double value) { return nlohmann::json(value).dump(); }

template <class Job>
class Run {
 public:
  Run(const Job& s, const Material& material, const RunOptions& options)
      : s_(s), material_(material), options_(options), training_(s, material, options.saving) {}

  /// Trains in the folder until all steps are done, from its checkpoint on if there is one, and
  /// evaluates. Throws support::Interrupted where a signal came; then all is saved.
  /// @param lock  of the folder
  Results run(const support::Lock& lock) {
    constexpr const char* header =
        "step,epoch,tokens,loss,divergence,compression,grad_norm,learning_rate,valid\n";
    const support::InterruptGuard interrupt;
    const auto checkpoint = checkpoint_of(options_.out);
    const bool goes_on = !options_.fresh && std::filesystem::exists(checkpoint);
    if (goes_on) training_.load(checkpoint);
    lock.remove_unfinished({"checkpoint.safetensors", "model.safetensors", "memory.safetensors",
                            "config.json", "memory_config.json", "tokenizer.json", "vocab.json",
                            "merges.txt", "encoder.json", "vocab.bpe", "results.json",
                            "figure.gp"});
    language_model::Log log(options_.out / "log.csv");
    if (goes_on) {
      log.go_on(header, training_.here().log_bytes, training_.steps());
    } else {
      for (const char* const name : {"results.json", "checkpoint.safetensors"})
        std::filesystem::remove(options_.out / name);
      log.begin(header);
    }
    support::gpt2::copy_encoding(material_.encoding, options_.out);
    // Hours have been made steps, which shall be the same when the run goes on.
    if (!goes_on && s_.hours > 0) training_.save(checkpoint, log.sync());
    train(log);
    if (training_.here().best_step == 0) training_.model().save(options_.out);
    support::write_file(options_.out / "figure.gp",
                        training_figure(s_.memory.memory + ", seed " + std::to_string(s_.seed),
                                        s_.evaluate_every > 0));
    support::draw_figure(options_.out);
    // The last file: with it the run is finished.
    const Results results = evaluated();
    auto json = support::json_of(results);
    json["settings"] = support::to_json(s_);
    support::write_file(options_.out / "results.json", json.dump(2) + '\n');
    return results;
  }

 private:
  Score score(const char* name, const Model& model, const Part& part, bool stops) const {
    const Batches batches(part, s_.text, s_.evaluation_batch, s_.memory.segment,
                          material_.corpus.start);
    return score_of(evaluate(name, model, part, batches,
                             [&](Index) {
                               if (stops)
                                 support::stop_if_interrupted([&] {
                                   return "stopped evaluating; the trained model is saved in " +
                                          options_.out.string() + "; to go on: " + options_.again;
                                 });
                             }),
                    part);
  }

  /// Validates, and keeps the model if none was better; nats a token.
  double validate() {
    const double valid =
        score("valid", training_.model(), material_.corpus.valid, false).nats_per_token;
    Position& here = training_.here();
    if (here.best_step == 0 || valid < here.best) {
      training_.model().save(options_.out);
      here.best_step = training_.steps();
      here.best = valid;
    }
    return valid;
  }

  void train(language_model::Log& log) {
    support::ProgressLine line(s_.memory.memory, s_.steps, training_.steps());
    support::RunningMean mean;
    double valid = std::numeric_limits<double>::quiet_NaN();
    const auto stepped = [&](const infty::TrainStep& step, const infty::Progress& progress) {
      const double loss = mean.add(training_.loss());
      const Index done = progress.done();
      const bool validates =
          s_.evaluate_every > 0 && (done % s_.evaluate_every == 0 || done == s_.steps);
      if (validates) valid = validate();
      log.append(std::to_string(done) + ',' + std::to_string(training_.segment().epoch) + ',' +
                 std::to_string(training_.segment().predicted) + ',' + number(training_.loss()) +
                 ',' + number(training_.parts().divergence) + ',' +
                 number(training_.parts().compression) + ',' + number(step.grad_norm) + ',' +
                 number(step.learning_rate) + ',' + (validates ? number(valid) : "") + '\n');
      const double speed = static_cast<double>(training_.here().tokens) / training_.here().seconds;
      if (std::isnan(valid))
        line.update(done, {{"loss", loss}, {"tokens/s", speed}});
      else
        line.update(done, {{"loss", loss}, {"valid", valid}, {"tokens/s", speed}});
      if (options_.pause > 0)
        std::this_thread::sleep_for(std::chrono::duration<double>(options_.pause));
    };
    const bool done =
        training_.run({.save = [&] { training_.save(checkpoint_of(options_.out), log.sync()); },
                       .stop = [] { return support::InterruptGuard::signal() != 0; },
                       .stepped = stepped});
    if (!done)
      throw support::Interrupted(support::InterruptGuard::signal(),
                                 "stopped behind step " + std::to_string(training_.steps()) +
                                     " of " + std::to_string(s_.steps) + ", saved in " +
                                     options_.out.string() + "; to go on: " + options_.again);
  }

  /// Of the model in the folder, which is the best or the last.
  Results evaluated() const {
    const auto model = support::gpt2::open_model(options_.out, s_.memory);
    const Position& here = training_.here();
    return {.job = std::is_same_v<Job, Finetuning> ? "finetune" : "pretrain",
            .memory = s_.memory.memory,
            .parameters = model->parameters(),
            .memory_parameters = model->memory_parameters(),
            .vocabulary = model->config().vocabulary,
            .steps = training_.steps(),
            .best_step = here.best_step > 0 ? here.best_step : training_.steps(),
            .trained_tokens = here.tokens,
            .seconds = here.seconds,
            .tokens_per_second = static_cast<double>(here.tokens) / here.seconds,
            .state_bytes = model->bytes_of(model->make_state(1)),
            .seed = s_.seed,
            .valid = score("valid", *model, material_.corpus.valid, true),
            .test = score("test", *model, material_.corpus.test, true)};
  }

  Job s_;
  const Material& material_;
  RunOptions options_;
  Training<Job> training_;
};

/// Throws infty::Error that says in what the run of a folder is another one; the steps of that, if
/// there is one, as they are the steps of this.
template <class Job>
std::optional<Job> settings_there(const Job& s, const Material& material,
                                  const std::filesystem::path& folder) {
  const auto path = checkpoint_of(folder);
  if (!std::filesystem::exists(path)) return std::nullopt;
  const infty::SafetensorsFile checkpoint(path);
  infty::require_checkpoint(checkpoint);
  const Job there = as_there(s, support::parse_json(checkpoint.metadata("settings"), path.string()),
                             folder, path.string());
  const auto position =
      support::parse<Position>(checkpoint.metadata("position"), path.string() + ": position");
  infty::require<infty::IoError>(
      position.text == material.corpus.fingerprint && position.base == material.base &&
          position.encoding == support::gpt2::encoding_fingerprint(material.encoding),
      "gpt2", folder.string(),
      " holds a run on another text, encoding or model: give another --out, or --fresh to begin "
      "anew");
  return there;
}

/// Trains in a folder and reports. The run that is there goes on, or is reported if it is finished.
template <class Job>
void train(const Job& asked, const Material& material, const RunOptions& options,
           const support::Lock& lock) {
  support::use_products(asked.products);
  for (const auto& [name, part] :
       {std::pair("train", &material.corpus.train), std::pair("valid", &material.corpus.valid),
        std::pair("test", &material.corpus.test)})
    describe(name, *part);
  const auto path = options.out / "results.json";
  Results results;
  std::optional<Job> there;
  if (!options.fresh) there = settings_there(asked, material, options.out);
  infty::require<infty::IoError>(
      options.fresh || there || !std::filesystem::exists(path), "gpt2", options.out.string(),
      " holds a finished run without its checkpoint: give another --out, or --fresh to begin anew");
  if (there && std::filesystem::exists(path)) {
    const auto [found, settings] = read_results(path);
    as_there(asked, settings, options.out, path.string());
    results = found;
    std::fprintf(stderr, "%s is finished\n", options.out.c_str());
  } else {
    Run<Job> run(there ? *there : with_steps(asked, material), material, options);
    results = run.run(lock);
  }
  std::printf(
      "%s, %td parameters, %td of them the memory's, %td steps, %td tokens, %.0f tokens/s\n",
      results.memory.c_str(), results.parameters, results.memory_parameters, results.steps,
      results.trained_tokens, results.tokens_per_second);
  print_score("valid", results.valid);
  print_score("test", results.test);
}

}  // namespace gpt2
