// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include <infty/train/checkpoint.hpp>

#include "../support/files.hpp"
#include "../support/interrupt.hpp"
#include "../support/json.hpp"
#include "../support/lock.hpp"
#include "../support/progress_line.hpp"
#include "../support/settings.hpp"
#include "figure.hpp"
#include "log.hpp"
#include "model.hpp"
#include "results.hpp"

namespace language_model {

/// What decides where results go and when, but not what they are.
struct TrainOptions {
  std::filesystem::path out = "language-model";
  Index save_every = 100;
  double pause = 0;    ///< seconds to wait behind every step
  bool fresh = false;  ///< whether what is in the folder is to be replaced
};

/// What one step was.
struct Step {
  Index step = 0, epoch = 0, tokens = 0;
  double loss = 0;  ///< of the tokens, in nats a token
  double grad_norm = 0, learning_rate = 0;
};

/// A model that is being trained. All that the next step depends on is saved and loaded.
class Training {
 public:
  Training(const Settings& s, const Corpus& corpus)
      : settings_(s),
        vocabulary_(corpus.tokenizer.fingerprint()),
        model_(make_model(s, corpus.tokenizer.size())),
        dropout_(s.seed, 3),
        batches_(corpus.train.stream, {.batch = s.batch,
                                       .segment = s.segment,
                                       .start = corpus.tokenizer.start(),
                                       .reset_documents = s.documents}),
        state_(model_->make_state(s.batch)) {}

  const support::Model& model() const { return *model_; }
  Index steps() const { return model_->steps(); }
  /// Tokens learned from until now.
  Index tokens() const { return tokens_; }
  /// Of all steps until now.
  double seconds() const { return seconds_; }

  Step step() {
    const auto start = std::chrono::steady_clock::now();
    const auto batch = batches_.next();
    model_->reset_rows(state_, batch);
    support::StepConfig config{.learning_rate = rate_of(settings_, steps()),
                               .kl_weight = settings_.kl_weight,
                               .auxiliary_weight = settings_.auxiliary_weight};
    if (settings_.clip > 0) config.max_norm = settings_.clip;
    if (settings_.model.dropout > 0) config.dropout = &dropout_;
    const auto done = model_->step(state_, batch, config);
    tokens_ += batch.predicted;
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return {.step = steps(),
            .epoch = batch.epoch,
            .tokens = batch.predicted,
            .loss = done.loss,
            .grad_norm = done.grad_norm,
            .learning_rate = config.learning_rate};
  }

  void save(const std::filesystem::path& path, const Corpus& corpus,
            std::uint64_t log_bytes) const {
    infty::SafetensorsWriter writer;
    model_->save_parameters(writer);
    model_->save_rest(writer, state_);
    infty::save_random(writer, dropout_, "dropout");
    writer.metadata("settings", support::to_json(settings_).dump());
    const auto& position = batches_.position();
    const Position here{.epoch = position.epoch,
                        .next = position.next,
                        .tokens = tokens_,
                        .seconds = seconds_,
                        .log_bytes = log_bytes,
                        .text = corpus.fingerprint,
                        .vocabulary = vocabulary_};
    writer.metadata("position", support::json_of(here).dump());
    writer.save(path);
  }

  /// Goes on from a checkpoint of this run; returns how long its log was. Throws infty::Error for
  /// a damaged one.
  std::uint64_t load(const std::filesystem::path& path) {
    infty::CheckpointLoader loader(path);
    model_->load_parameters(loader);
    model_->load_rest(loader, state_);
    loader.random(dropout_, "dropout");
    const Position there = position_of(loader.file());
    infty::require<infty::IoError>(there.tokens >= 0 && there.seconds >= 0, "language_model",
                                   path.string(), ": ", there.tokens, " tokens in ", there.seconds,
                                   " seconds cannot be");
    batches_.seek({.epoch = there.epoch, .next = there.next});
    loader.apply();
    tokens_ = there.tokens;
    seconds_ = there.seconds;
    return there.log_bytes;
  }

 private:
  Settings settings_;
  std::uint64_t vocabulary_;  // its fingerprint
  std::unique_ptr<support::Model> model_;
  infty::Random dropout_;
  infty::BatchStream batches_;
  support::Model::State state_;
  Index tokens_ = 0;
  double seconds_ = 0;
};

/// A number as short as it can be read back.
inline std::string number(double value) { return nlohmann::json(value).dump(); }

inline std::string csv_line(const Step& step, const std::string& valid) {
  return std::to_string(step.step) + ',' + std::to_string(step.epoch) + ',' +
         std::to_string(step.tokens) + ',' + number(step.loss) + ',' + number(step.grad_norm) +
         ',' + number(step.learning_rate) + ',' + valid + '\n';
}

inline Results results_of(const Settings& s, const Corpus& corpus, const Training& training) {
  const support::Model& model = training.model();
  const auto score = [&](const Split& split) {
    return split_score(evaluate(model, s, corpus.tokenizer, split), split);
  };
  return {.parameters = model.parameters(),
          .vocabulary = corpus.tokenizer.size(),
          .steps = training.steps(),
          .trained_tokens = training.tokens(),
          .token = corpus.tokenizer.token_name(),
          .seconds = training.seconds(),
          .tokens_per_second = static_cast<double>(training.tokens()) / training.seconds(),
          .state_bytes = model.bytes_of(model.make_state(1)),
          .valid = score(corpus.valid),
          .test = score(corpus.test)};
}

/// Trains until all steps are done, saving as it goes; a signal saves and stops it. Throws
/// support::Interrupted then.
inline void train_to_end(const Settings& s, const Corpus& corpus, const TrainOptions& options,
                         Training& training, Log& log) {
  const support::InterruptGuard interrupt;
  support::ProgressLine line(s.memory, s.steps, training.steps());
  double loss = 0, valid = std::numeric_limits<double>::quiet_NaN();
  for (Index done = 0; training.steps() < s.steps;) {
    const Step step = training.step();
    ++done;
    loss += (step.loss - loss) / static_cast<double>(std::min<Index>(done, 50));
    const bool validate = s.evaluate_every > 0 && step.step % s.evaluate_every == 0;
    if (validate) valid = evaluate(training.model(), s, corpus.tokenizer, corpus.valid).per_token();
    log.append(csv_line(step, validate ? number(valid) : ""));
    const int signal = interrupt.signal();
    if (step.step % options.save_every == 0 || step.step == s.steps || signal != 0)
      training.save(checkpoint_of(options.out), corpus, log.sync());
    if (signal != 0)
      throw support::Interrupted(signal, "stopped behind step " + std::to_string(step.step) +
                                             " of " + std::to_string(s.steps) + ", saved in " +
                                             options.out.string() + ": the same command goes on");
    const double speed = static_cast<double>(training.tokens()) / training.seconds();
    if (std::isnan(valid))
      line.update(step.step, {{"loss", loss}, {"tokens/s", speed}});
    else
      line.update(step.step, {{"loss", loss}, {"valid", valid}, {"tokens/s", speed}});
    if (options.pause > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(options.pause));
  }
}

/// Trains in a folder until all steps are done: from its checkpoint on, if there is one. Nothing is
/// written before it is known that the run there is this one.
/// @param lock  of the folder
inline void train(const Settings& s, const Corpus& corpus, const TrainOptions& options,
                  const support::Lock& lock) {
  constexpr const char* header = "step,epoch,tokens,loss,grad_norm,learning_rate,valid\n";
  const auto checkpoint = checkpoint_of(options.out);
  if (!options.fresh) require_same_run(s, corpus, options.out);
  Training training(s, corpus);
  const bool goes_on = !options.fresh && std::filesystem::exists(checkpoint);
  const std::uint64_t log_bytes = goes_on ? training.load(checkpoint) : 0;
  lock.remove_unfinished({"checkpoint.safetensors", "vocabulary.txt", "encoder.json", "vocab.bpe",
                          "results.json", "figure.gp"});
  Log log(options.out / "log.csv");
  if (goes_on) {
    log.go_on(header, log_bytes, training.steps());
  } else {
    for (const char* const name : {"results.json", "checkpoint.safetensors"})
      std::filesystem::remove(options.out / name);
    log.begin(header);
  }
  corpus.tokenizer.save(options.out);
  train_to_end(s, corpus, options, training, log);
  support::write_file(options.out / "figure.gp", training_figure(s));
  support::draw_figure(options.out);
  // The last file: with it the run is finished.
  auto results = support::json_of(results_of(s, corpus, training));
  results["settings"] = support::to_json(s);
  support::write_file(options.out / "results.json", results.dump(2) + '\n');
}

}  // namespace language_model
