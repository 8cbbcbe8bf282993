// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "../support/decimal.hpp"
#include "../support/files.hpp"
#include "../support/interrupt.hpp"
#include "../support/language_model/log.hpp"
#include "../support/lock.hpp"
#include "../support/running_mean.hpp"
#include "../support/saving.hpp"
#include "run.hpp"

namespace dialogue {

/// What decides where results go and when, but not what they are.
struct TrainOptions {
  Files files;
  std::filesystem::path out = "dialogue-model", wordnet;
  support::Saving saving = {};
  double pause = 0;        ///< seconds to wait behind every step
  bool fresh = false;      ///< whether what is in the folder is to be replaced
  std::string again = "";  ///< the command that goes on
};

/// Gnuplot commands that draw figure.png of log.csv.
inline std::string training_figure(const Settings& s) {
  const std::string window = std::to_string(support::RunningMean::window);
  return "set terminal pngcairo size 800,480 font 'sans,11'\nset output 'figure.png'\n"
         "set datafile separator ','\nset border 3\nset tics nomirror out\nset key top right\n"
         "set grid y lc '#dddddd'\nset title 'Dialogue, form " +
         s.form + ", seed " + std::to_string(s.seed) +
         "'\nset xlabel 'dialogues'\nset ylabel 'loss in nats a token'\nweight = 0\nmean = 0\n"
         "kept = 1 - 1. / " +
         window +
         "\nsmooth(x) = (weight = weight * kept + 1, mean = mean + (x - mean) / weight)\n"
         "plot 'log.csv' using 1:4 skip 1 with points pt 7 ps .2 lc '#e8b89a' title 'dialogues "
         "that are trained on, with their documents', \\\n  '' using 1:(smooth($4)) skip 1 with "
         "lines lw 2 lc '#c2410c' title 'their exponentially weighted mean', \\\n  '' using 1:7 "
         "skip 1 with linespoints pt 7 lw 2 lc '#1d4ed8' title 'validation, turns alone'\n";
}

inline void print_score(const char* part, const Score& score) {
  std::printf("%-5s  perplexity %s as in Table 2, %s by token (%lld tokens)", part,
              support::decimal(score.table_perplexity, 2).c_str(),
              support::decimal(score.perplexity, 2).c_str(),
              static_cast<long long>(score.predicted));
  if (score.answers > 0)
    std::printf("  F1 %.2f  ROUGE-1 %.2f  ROUGE-L %.2f  METEOR %.2f  (%lld answers)", score.f1,
                score.rouge1, score.rouge_l, score.meteor, static_cast<long long>(score.answers));
  std::printf("\n");
}

inline void print_run(const Run& run) {
  std::printf("%s, %lld parameters, %lld of them the memory's, %lld dialogues, %lld tokens\n",
              run.form.c_str(), static_cast<long long>(run.parameters),
              static_cast<long long>(run.memory_parameters), static_cast<long long>(run.steps),
              static_cast<long long>(run.tokens));
  print_score("valid", run.valid);
  print_score("test", run.test);
}

namespace detail {

/// Trains until all steps are done, saving as it goes. Throws support::Interrupted behind a signal.
inline void train_to_end(Training& training, const Corpus& corpus, const TrainOptions& options,
                         language_model::Log& log) {
  const Settings& s = training.settings();
  const auto checkpoint = options.out / "checkpoint.safetensors";
  support::ProgressLine line(s.form, training.all_steps(), training.steps(), "dialogue");
  support::RunningMean mean;
  const auto number = [](double value) { return nlohmann::json(value).dump(); };
  const auto save = [&] { training.save(checkpoint, log.sync()); };
  const auto stopped_behind = [&](Index dialogue) {
    return "stopped behind dialogue " + std::to_string(dialogue) + " of " +
           std::to_string(training.all_steps()) + ", saved in " + options.out.string() +
           "; to go on: " + options.again;
  };
  const auto stepped = [&](const infty::TrainStep& step, const infty::Progress& progress) {
    std::string valid;
    if (progress.done() % training.validate_every() == 0) {
      const auto stop = [&] {
        support::stop_if_interrupted([&] { return stopped_behind(training.steps() - 1); });
      };
      const Score score = score_split("valid", false, training.model(), nullptr, s,
                                      corpus.tokenizer, corpus.valid, nullptr, nullptr, stop);
      valid = number(std::log(score.perplexity));
    }
    log.append(std::to_string(training.steps()) + ',' + std::to_string(training.epoch()) + ',' +
               std::to_string(training.step_tokens()) + ',' + number(training.loss()) + ',' +
               number(step.grad_norm) + ',' + number(step.learning_rate) + ',' + valid + '\n');
    line.update(progress.done(), {{"loss", mean.add(training.loss())},
                                  {"tokens/s", static_cast<double>(training.position().tokens) /
                                                   training.position().seconds}});
    if (options.pause > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(options.pause));
    // A validation can be long, and who stops it goes on in front of its step.
    if ((progress.done() + 1) % training.validate_every() == 0) save();
  };
  const bool done = training.run({.save = save,
                                  .stop = [] { return support::InterruptGuard::signal() != 0; },
                                  .stepped = stepped});
  if (!done)
    throw support::Interrupted(support::InterruptGuard::signal(), stopped_behind(training.steps()));
}

}  // namespace detail

/// Trains in a folder until all steps are done, from its checkpoint on if there is one; writes the
/// model there and scores it.
inline void train(const Settings& s, const TrainOptions& options) {
  support::use_products(s.products);
  constexpr const char* header = "dialogue,epoch,tokens,loss,grad_norm,learning_rate,valid\n";
  const auto checkpoint = options.out / "checkpoint.safetensors";
  const auto results = options.out / "results.json";
  const Corpus corpus = read_corpus(options.files, s);
  const auto wordnet = open_wordnet(options.wordnet);
  const auto lock = support::Lock::folder(options.out);
  std::error_code ignored;
  infty::require(!std::filesystem::equivalent(options.files.base, options.out, ignored), "dialogue",
                 "--out is --base: the trained model would take the place of the one that it is "
                 "made of");
  if (!options.fresh) {
    support::gpt2::require_no_model("dialogue", options.out);
    support::require_same_settings("dialogue", s, options.out, {});
    if (std::filesystem::exists(results)) {
      const auto run = support::parse<Run>(infty::MappedFile(results).text(), results.string());
      require_same(run, corpus, wordnet.has_value(), options.out);
      std::fprintf(stderr, "%s is finished\n", options.out.c_str());
      return print_run(run);
    }
  }
  const support::InterruptGuard interrupt;
  Training training(s, corpus, options.files, options.saving);
  const bool goes_on = !options.fresh && std::filesystem::exists(checkpoint);
  if (goes_on) training.load(checkpoint);
  lock.remove_unfinished({"checkpoint.safetensors", "settings.json", "results.json", "figure.gp",
                          "config.json", "model.safetensors", "memory.safetensors",
                          "memory_config.json", "added_tokens.json", "dialogue.json"});
  for (const char* const name : support::gpt2::encoding_files) lock.remove_unfinished({name});
  language_model::Log log(options.out / "log.csv");
  if (goes_on) {
    log.go_on(header, training.position().log_bytes, training.steps());
  } else {
    for (const auto& path : {results, checkpoint}) std::filesystem::remove(path);
    log.begin(header);
  }
  support::write_file(options.out / "settings.json", support::to_json(s).dump(2) + '\n');
  detail::train_to_end(training, corpus, options, log);
  support::write_file(options.out / "figure.gp", training_figure(s));
  support::draw_figure(options.out);
  const Run run = results_of(training, corpus, options.files, options.out,
                             wordnet ? &*wordnet : nullptr, false, [&] {
                               support::stop_if_interrupted([&] {
                                 return "stopped scoring; the trained model is saved in " +
                                        options.out.string() + "; to go on: " + options.again;
                               });
                             });
  support::write_file(results, support::json_of(run).dump(2) + '\n');
  print_run(run);
}

}  // namespace dialogue
