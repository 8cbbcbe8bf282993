// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
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
#include "../running_mean.hpp"
#include "../settings.hpp"
#include "../training.hpp"
#include "figure.hpp"
#include "log.hpp"
#include "model.hpp"
#include "results.hpp"

namespace language_model {

/// What decides where results go and when, but not what they are.
struct TrainOptions {
  std::filesystem::path out = "language-model";
  support::Saving saving = {};
  double pause = 0;        ///< seconds to wait behind every step
  bool fresh = false;      ///< whether what is in the folder is to be replaced
  std::string again = "";  ///< the command that goes on with the run
};

/// What the next step depends on, and what was learned from until now.
class Training {
 public:
  Training(const Settings& s, const Corpus& corpus, const support::Saving& saving)
      : settings_(s),
        here_{.next = {}, .text = corpus.fingerprint, .vocabulary = corpus.tokenizer.fingerprint()},
        model_(make_model(s, corpus.tokenizer.size())),
        dropout_(s.seed, 3),
        retrieved_(&corpus.train.retrieved),
        batches_(corpus.train.stream, {.batch = s.batch,
                                       .segment = s.segment,
                                       .start = corpus.tokenizer.start(),
                                       .reset_documents = s.documents}),
        state_(model_->make_state(s.batch)),
        trainer_(model_->named_parameters(), trainer_config(s, saving)) {
    trainer_.keep_settings(support::to_json(s).dump()).keep("dropout", dropout_);
    trainer_.keep_tensors(
        [this](infty::SafetensorsWriter& writer) { model_->save_state(writer, state_); },
        [this](infty::CheckpointLoader& loader) { model_->load_state(loader, state_); });
    trainer_.keep_text(
        "position", [this] { return position(); },
        [this](const std::string& text) { return taken(text); });
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  const support::Model& model() const { return *model_; }
  Index steps() const { return trainer_.steps(); }
  Index tokens() const { return here_.tokens; }
  double seconds() const { return here_.seconds; }
  std::uint64_t log_bytes() const { return here_.log_bytes; }

  /// What the last step read: its tokens, the epoch of its last segment, and its loss, in nats a
  /// token.
  Index step_tokens() const { return step_tokens_; }
  Index epoch() const { return segments_.back().epoch; }
  double loss() const { return static_cast<double>(loss_.value().item()); }

  /// Trains on, step by step. Returns whether all steps are done.
  bool run(infty::TrainerRun options) {
    const auto stepped = std::move(options.stepped);
    options.stepped = [&](const infty::TrainStep& step, const infty::Progress& progress) {
      here_.tokens += step_tokens_;
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start_;
      here_.seconds += time.count();
      stepped(step, progress);
    };
    return trainer_.run([this] { return objective(); }, options);
  }

  /// @param log_bytes  how long the log is
  void save(const std::filesystem::path& path, std::uint64_t log_bytes) {
    here_.log_bytes = log_bytes;
    trainer_.save(path);
  }

  /// Goes on from a checkpoint of this run. Throws infty::Error for a damaged one.
  void load(const std::filesystem::path& path) { trainer_.load(path); }

 private:
  infty::Variable<float> objective() {
    start_ = std::chrono::steady_clock::now();
    segments_.clear();
    step_tokens_ = 0;
    for (Index i = 0; i < settings_.bptt; ++i) {
      segments_.push_back(batches_.next());
      retrieved_->put(segments_.back());
      step_tokens_ += segments_.back().predicted;
    }
    const auto made =
        model_->objective(state_, segments_,
                          {.kl_weight = settings_.kl_weight,
                           .auxiliary_weight = settings_.auxiliary_weight,
                           .dropout = settings_.model.dropout > 0 ? &dropout_ : nullptr,
                           .replay = settings_.replay});
    loss_ = made.loss;
    return made.total;
  }

  std::string position() {
    here_.epoch = batches_.position().epoch;
    here_.next = batches_.position().next;
    return support::json_of(here_).dump();
  }

  std::function<void()> taken(const std::string& text) {
    const auto there = support::parse<Position>(text, "the checkpoint's position");
    infty::require<infty::IoError>(there.tokens >= 0 && there.seconds >= 0, "language_model",
                                   "the checkpoint's position: ", there.tokens, " tokens in ",
                                   there.seconds, " seconds cannot be");
    infty::BatchStream batches = batches_;
    batches.seek({.epoch = there.epoch, .next = there.next});
    return [this, there, batches] {
      here_ = there;
      batches_ = batches;
    };
  }

  Settings settings_;
  Position here_;
  std::unique_ptr<support::Model> model_;
  infty::Random dropout_;
  const RetrievedTokens* retrieved_;
  infty::BatchStream batches_;
  support::Model::State state_;
  infty::Trainer<float> trainer_;
  std::vector<infty::TextBatch> segments_;  // of the last step
  Index step_tokens_ = 0;
  infty::Variable<float> loss_;
  std::chrono::steady_clock::time_point start_;
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

/// Throws support::Interrupted where a signal came: all that was trained is saved.
inline Results results_of(const Settings& s, const Corpus& corpus, const Training& training,
                          const TrainOptions& options) {
  const support::Model& model = training.model();
  const auto score = [&](const char* name, const Split& split) {
    const auto found = evaluate_shown(name, model, s, corpus.tokenizer, split, [&](Index) {
      support::stop_if_interrupted([&] {
        return "stopped evaluating; the trained model is saved in " + options.out.string() +
               "; to go on: " + options.again;
      });
    });
    return split_score(found, split);
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

/// Trains until all steps are done, saving as it goes; a signal saves and stops it behind a step,
/// and what is evaluated there. Throws support::Interrupted then.
inline void train_to_end(const Settings& s, const Corpus& corpus, const TrainOptions& options,
                         Training& training, Log& log) {
  support::ProgressLine line(support::model_name(s), s.steps, training.steps());
  support::RunningMean mean;
  double valid = std::numeric_limits<double>::quiet_NaN();
  const auto stepped = [&](const infty::TrainStep& step, const infty::Progress& progress) {
    const double loss = mean.add(training.loss());
    const bool validate = s.evaluate_every > 0 && progress.done() % s.evaluate_every == 0;
    if (validate)
      valid =
          evaluate_shown("valid", training.model(), s, corpus.tokenizer, corpus.valid, [](Index) {
          }).per_token();
    log.append(csv_line(training, step, validate ? number(valid) : ""));
    const double speed = static_cast<double>(training.tokens()) / training.seconds();
    if (std::isnan(valid))
      line.update(progress.done(), {{"loss", loss}, {"tokens/s", speed}});
    else
      line.update(progress.done(), {{"loss", loss}, {"valid", valid}, {"tokens/s", speed}});
    if (options.pause > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(options.pause));
  };
  const bool done =
      training.run({.save = [&] { training.save(checkpoint_of(options.out), log.sync()); },
                    .stop = [] { return support::InterruptGuard::signal() != 0; },
                    .stepped = stepped});
  if (!done)
    throw support::Interrupted(support::InterruptGuard::signal(),
                               "stopped behind step " + std::to_string(training.steps()) + " of " +
                                   std::to_string(s.steps) + ", saved in " + options.out.string() +
                                   "; to go on: " + options.again);
}

/// Trains in a folder until all steps are done: from its checkpoint on, if there is one. Nothing is
/// written before it is known that the run there is this one.
/// @param lock  of the folder
inline void train(const Settings& s, const Corpus& corpus, const TrainOptions& options,
                  const support::Lock& lock) {
  constexpr const char* header = "step,epoch,tokens,loss,grad_norm,learning_rate,valid\n";
  const auto checkpoint = checkpoint_of(options.out);
  if (!options.fresh) require_same_run(s, corpus, options.out);
  const support::InterruptGuard interrupt;
  Training training(s, corpus, options.saving);
  const bool goes_on = !options.fresh && std::filesystem::exists(checkpoint);
  if (goes_on) training.load(checkpoint);
  lock.remove_unfinished({"checkpoint.safetensors", "vocabulary.txt", "encoder.json", "vocab.bpe",
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
  train_to_end(s, corpus, options, training, log);
  support::write_file(options.out / "figure.gp", training_figure(s));
  support::draw_figure(options.out);
  // The last file: with it the run is finished.
  auto results = support::json_of(results_of(s, corpus, training, options));
  results["settings"] = support::to_json(s);
  support::write_file(options.out / "results.json", results.dump(2) + '\n');
}

}  // namespace language_model
