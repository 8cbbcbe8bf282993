// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/train/trainer.hpp>

#include "../files.hpp"
#include "../interrupt.hpp"
#include "../json.hpp"
#include "../lock.hpp"
#include "../progress_line.hpp"
#include "../ranks.hpp"
#include "../running_mean.hpp"
#include "../settings.hpp"
#include "../training.hpp"
#include "begin_from.hpp"
#include "figure.hpp"
#include "log.hpp"
#include "model.hpp"
#include "results.hpp"
#include "shared_evaluation.hpp"
#include "steps.hpp"

namespace language_model {

/// What decides where results go and when, but not what they are.
struct TrainOptions {
  std::filesystem::path out = "language-model";
  support::Saving saving = {};
  double pause = 0;  ///< seconds to wait behind every step
  support::Sharing sharing = {};
  bool fresh = false;      ///< whether what is in the folder is to be replaced
  std::string again = "";  ///< the command that goes on with the run
};

/// A number as short as it can be read back.
inline std::string number(double value) { return nlohmann::json(value).dump(); }

inline std::string csv_line(const Training& training, const infty::TrainStep& step,
                            const std::string& valid) {
  return std::to_string(training.steps()) + ',' + std::to_string(training.epoch()) + ',' +
         std::to_string(training.step_tokens()) + ',' + number(training.loss()) + ',' +
         number(step.grad_norm) + ',' + number(step.learning_rate) + ',' + valid + '\n';
}

/// `evaluate` with a line on its progress.
/// @param behind  called behind each segment; may throw
/// @param losses  losses(state, batch): of a segment's targets
template <class Behind, class Losses>
infty::TextScore evaluate_shown(const char* name, const support::Model& model, const Settings& s,
                                const Tokenizer& tokenizer, const Split& split, Behind&& behind,
                                Losses&& losses) {
  support::ProgressLine line(name, std::ssize(split.stream.tokens), 0, "token");
  const auto done = [&](Index tokens) {
    line.update(tokens);
    behind(tokens);
  };
  return evaluate(model, s, tokenizer, split, done, losses);
}

/// The same with the model's own losses.
template <class Behind>
infty::TextScore evaluate_shown(const char* name, const support::Model& model, const Settings& s,
                                const Tokenizer& tokenizer, const Split& split, Behind&& behind) {
  return evaluate_shown(name, model, s, tokenizer, split, behind,
                        [&](support::Model::State& state, const infty::TextBatch& batch) {
                          return model.losses(state, batch);
                        });
}

/// A training's evaluation: with --shards ranks share it out.
template <class Behind>
infty::TextScore evaluate_in_training(const char* name, const Settings& s, const Corpus& corpus,
                                      const Split& split, const support::Model& model,
                                      infty::AnyCommunicator& ranks, Behind&& behind) {
  return s.shards > 0 ? evaluate_trained(name, model, s, corpus.tokenizer, split, ranks, behind)
                      : evaluate_shown(name, model, s, corpus.tokenizer, split, behind);
}

/// What the first of the ranks reports. Throws support::Interrupted where a signal came, on several
/// ranks behind what is evaluated there, on all of them: all that was trained is saved.
inline Results results_of(const Settings& s, const Corpus& corpus, const Training& training,
                          const TrainOptions& options, infty::AnyCommunicator& ranks) {
  const support::Model& model = training.model();
  const auto stop_if = [&](int signal) {
    if (signal != 0)
      throw support::Interrupted(signal, "stopped evaluating; the trained model is saved in " +
                                             options.out.string() + "; to go on: " + options.again);
  };
  const auto score = [&](const char* name, const Split& split) {
    const auto found = evaluate_in_training(name, s, corpus, split, model, ranks, [&](Index) {
      if (ranks.size() == 1) stop_if(support::InterruptGuard::signal());
    });
    if (ranks.size() > 1) stop_if(support::signal_of_all(ranks));
    return ranks.rank() == 0 ? split_score(found, split) : SplitScore{};
  };
  return {.parameters = model.parameters(),
          .vocabulary = corpus.tokenizer.size(),
          .steps = training.steps(),
          .trained_tokens = training.tokens(),
          .token = corpus.tokenizer.token_name(),
          .seconds = training.seconds(),
          .tokens_per_second = static_cast<double>(training.tokens()) / training.seconds(),
          .state_bytes = model.bytes_of(model.make_state(1)),
          .valid = score("valid", corpus.valid),
          .test = score("test", corpus.test)};
}

/// Trains until all steps are done, saving as it goes; a signal to any rank saves and stops all of
/// them behind a step, and what is evaluated there. Throws support::Interrupted then.
/// @param log  of the first rank, which says how far it is; null on others
inline void train_to_end(const Settings& s, const Corpus& corpus, const TrainOptions& options,
                         infty::AnyCommunicator& ranks, Training& training, Log* log) {
  support::ProgressLine line(support::model_name(s), s.steps, training.steps());
  support::RunningMean mean;
  double valid = std::numeric_limits<double>::quiet_NaN();
  const auto stepped = [&](const infty::TrainStep& step, const infty::Progress& progress) {
    const bool validate = s.evaluate_every > 0 && progress.done() % s.evaluate_every == 0;
    infty::TextScore validated;
    if (validate)
      validated = evaluate_in_training("valid", s, corpus, corpus.valid, training.model(), ranks,
                                       [](Index) {});
    if (!log) return;
    const double loss = mean.add(training.loss());
    if (validate) valid = validated.per_token();
    log->append(csv_line(training, step, validate ? number(valid) : ""));
    const double speed = static_cast<double>(training.tokens()) / training.seconds();
    if (std::isnan(valid))
      line.update(progress.done(), {{"loss", loss}, {"tokens/s", speed}});
    else
      line.update(progress.done(), {{"loss", loss}, {"valid", valid}, {"tokens/s", speed}});
    if (options.pause > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(options.pause));
  };
  const bool done = training.run(
      {.save = [&] { training.save(checkpoint_of(options.out), log ? log->sync() : 0); },
       .stop = [] { return support::InterruptGuard::signal() != 0; },
       .stepped = stepped});
  if (!done)
    throw support::Interrupted(support::signal_of_all(ranks),
                               "stopped behind step " + std::to_string(training.steps()) + " of " +
                                   std::to_string(s.steps) + ", saved in " + options.out.string() +
                                   "; to go on: " + options.again);
}

/// Throws infty::ValueError that says in what ranks differ that must not: the program, the
/// settings, the text and its vocabulary, or where the run in the folder stands.
inline void require_same_on_all(infty::AnyCommunicator& ranks, const Settings& s,
                                const Corpus& corpus, const TrainOptions& options) {
  if (ranks.size() == 1) return;
  infty::require_same(ranks, "the program", support::program_fingerprint());
  infty::require_same(ranks, "the settings", support::to_json(s).dump() + options.sharing.text());
  infty::require_same(ranks, "the vocabulary", corpus.tokenizer.fingerprint());
  infty::require_same(ranks, "the text", corpus.fingerprint);
  const auto checkpoint = checkpoint_of(options.out);
  const bool there = !options.fresh && std::filesystem::exists(checkpoint);
  infty::require_same(ranks, "the checkpoint in " + options.out.string(),
                      there ? infty::SafetensorsFile(checkpoint).metadata("position") : "");
}

/// Trains in a folder until all steps are done: from its checkpoint on, if there is one. Nothing is
/// written before it is known that the run there is this one, and the same on all ranks.
/// @param lock  of the folder, which the first rank holds; null on others
inline void train(const Settings& s, const Corpus& corpus, const TrainOptions& options,
                  infty::AnyCommunicator& ranks, const support::Lock* lock) {
  constexpr const char* header = "step,epoch,tokens,loss,grad_norm,learning_rate,valid\n";
  const auto checkpoint = checkpoint_of(options.out);
  if (!options.fresh) require_same_run(s, corpus, options.out);
  require_same_on_all(ranks, s, corpus, options);
  const support::InterruptGuard interrupt;
  Training training(s, corpus, options.saving, ranks, options.sharing);
  const bool goes_on = !options.fresh && std::filesystem::exists(checkpoint);
  if (goes_on) {
    training.load(checkpoint);
  } else if (!s.from.empty()) {
    const Begun begun = begin_from(s.from, corpus.tokenizer, training.model());
    if (lock) std::fprintf(stderr, "%s\n", text_of(begun, s.from).c_str());
  }
  ranks.barrier();  // nobody reads any more
  if (!lock) {
    train_to_end(s, corpus, options, ranks, training, nullptr);
    results_of(s, corpus, training, options, ranks);
    return;
  }
  lock->remove_unfinished({"checkpoint.safetensors", "vocabulary.txt", "encoder.json", "vocab.bpe",
                           "vocab.json", "merges.txt", "results.json", "figure.gp",
                           "retrieved.safetensors"});
  Log log(options.out / "log.csv");
  if (goes_on) {
    log.go_on(header, training.log_bytes(), training.steps());
  } else {
    for (const char* const name : {"results.json", "checkpoint.safetensors"})
      std::filesystem::remove(options.out / name);
    log.begin(header);
  }
  corpus.tokenizer.save(options.out);
  train_to_end(s, corpus, options, ranks, training, &log);
  support::write_file(options.out / "figure.gp", training_figure(s));
  support::draw_figure(options.out);
  // The last file: with it the run is finished.
  auto results = support::json_of(results_of(s, corpus, training, options, ranks));
  results["settings"] = support::to_json(s);
  support::write_file(options.out / "results.json", results.dump(2) + '\n');
}

/// The same on one rank.
inline void train(const Settings& s, const Corpus& corpus, const TrainOptions& options,
                  const support::Lock& lock) {
  infty::AnyCommunicator alone;
  train(s, corpus, options, alone, &lock);
}

}  // namespace language_model
