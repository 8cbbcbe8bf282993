// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <infty/train/trainer.hpp>

#include "../support/gpt2/folder.hpp"
#include "../support/gpt2/model.hpp"
#include "../support/interrupt.hpp"
#include "../support/json.hpp"
#include "../support/training.hpp"
#include "settings.hpp"
#include "text.hpp"

namespace gpt2 {

using support::gpt2::Model;

/// Where a training stands, beside what its tensors say, and what it is of.
struct Position {
  Index epoch = 0;
  std::vector<Index> next;  ///< target of each row
  Index tokens = 0;         ///< learned from until now
  double seconds = 0;       ///< of all steps until now
  std::uint64_t log_bytes = 0;
  Index best_step = 0;  ///< behind which validation was best; 0: none yet
  double best = 0;      ///< nats a token there
  std::uint64_t text = 0, encoding = 0, base = 0;  ///< fingerprints
};

template <class See>
void each_field(Position& position, See&& see) {
  see("epoch", position.epoch);
  see("next", position.next);
  see("tokens", position.tokens);
  see("seconds", position.seconds);
  see("log_bytes", position.log_bytes);
  see("best_step", position.best_step);
  see("best", position.best);
  see("text", position.text);
  see("encoding", position.encoding);
  see("base", position.base);
}

inline std::filesystem::path checkpoint_of(const std::filesystem::path& folder) {
  return folder / "checkpoint.safetensors";
}

/// What a training is of: its text, the folder of its encoding, and what tells it from others.
struct Material {
  Corpus corpus;
  std::filesystem::path encoding;
  std::uint64_t base = 0;  ///< of the model that is trained on; 0: none
  Index vocabulary = 0;
};

/// What the next step depends on, and what was learned from until now.
template <class Job>
class Training {
 public:
  Training(const Job& s, const Material& material, const support::Saving& saving)
      : settings_(s),
        here_{.next = {},
              .text = material.corpus.fingerprint,
              .encoding = support::gpt2::encoding_fingerprint(material.encoding),
              .base = material.base},
        model_(make_model(s, material)),
        dropout_(s.seed, 3),
        batches_(material.corpus.train, s.text, s.batch, s.memory.segment, material.corpus.start),
        state_(model_->make_state(s.batch)),
        trainer_(model_->named_parameters(), support::trainer_config(s, saving)) {
    if constexpr (std::is_same_v<Job, Finetuning>)
      if (s.memory.memory != "none")
        trainer_.scale_rate(".mixer.memory.", s.memory_rate / s.adam.learning_rate);
    trainer_.keep_settings(support::to_json(s).dump(), support::before_they_were().dump())
        .keep("dropout", dropout_);
    trainer_.keep_tensors(
        [this](infty::SafetensorsWriter& writer) { model_->save_state(writer, state_); },
        [this](infty::CheckpointLoader& loader) { model_->load_state(loader, state_); });
    trainer_.keep_text(
        "position", [this] { return position(); },
        [this](const std::string& text) { return taken(text); });
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  const Model& model() const { return *model_; }
  Index steps() const { return trainer_.steps(); }
  /// Where it stands; the place in the text is that of the last checkpoint.
  Position& here() { return here_; }
  const Position& here() const { return here_; }

  /// What the last step read: its tokens and its epoch; and what came of it.
  const infty::TextBatch& segment() const { return segment_; }
  const support::gpt2::LossInParts& parts() const { return parts_; }
  double loss() const { return static_cast<double>(parts_.loss.value().item()); }

  /// Trains on, step by step. Returns whether all steps are done.
  bool run(infty::TrainerRun options) {
    const auto stepped = std::move(options.stepped);
    options.stepped = [&](const infty::TrainStep& step, const infty::Progress& progress) {
      here_.tokens += segment_.predicted;
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start_;
      here_.seconds += time.count();
      if (stepped) stepped(step, progress);
    };
    return trainer_.run([this] { return objective(); }, options);
  }

  void save(const std::filesystem::path& path, std::uint64_t log_bytes) {
    here_.log_bytes = log_bytes;
    trainer_.save(path);
  }

  /// Goes on from a checkpoint of this run. Throws infty::Error for a damaged one.
  void load(const std::filesystem::path& path) { trainer_.load(path); }

 private:
  static std::unique_ptr<Model> make_model(const Job& s, const Material& material) {
    if constexpr (std::is_same_v<Job, Finetuning>) {
      auto model =
          support::gpt2::open_model(s.model, s.memory, {.seed = s.seed, .dropout = s.dropout});
      if (s.freeze) model->train_memory_alone();
      return model;
    } else {
      infty::Gpt2Config config = s.model;
      config.vocabulary = material.vocabulary;
      config.begin_token = config.end_token = material.corpus.start;
      return support::gpt2::make_model(config, s.memory, {.seed = s.seed});
    }
  }

  infty::Variable<float> objective() {
    start_ = std::chrono::steady_clock::now();
    segment_ = batches_.next();
    support::gpt2::LossWeights weights;
    if constexpr (std::is_same_v<Job, Finetuning>)
      weights = {.kl = settings_.kl_weight, .compression = settings_.compression_weight};
    const infty::Gpt2Config& config = model_->config();
    const bool drops = config.dropout > 0 || config.attention_dropout > 0 ||
                       config.resolved_embedding_dropout() > 0;
    parts_ = model_->objective(state_, segment_, weights, drops ? &dropout_ : nullptr);
    return parts_.total;
  }

  std::string position() {
    here_.epoch = batches_.position().epoch;
    here_.next = batches_.position().next;
    return support::json_of(here_).dump();
  }

  std::function<void()> taken(const std::string& text) {
    const auto there = support::parse<Position>(text, "the checkpoint's position");
    infty::require<infty::IoError>(there.tokens >= 0 && there.seconds >= 0 && there.best_step >= 0,
                                   "gpt2", "the checkpoint's position: ", there.tokens,
                                   " tokens in ", there.seconds, " seconds cannot be");
    Batches batches = batches_;
    batches.seek({.epoch = there.epoch, .next = there.next});
    return [this, there, batches] {
      here_ = there;
      batches_ = batches;
    };
  }

  Job settings_;
  Position here_;
  std::unique_ptr<Model> model_;
  infty::Random dropout_;
  Batches batches_;
  Model::State state_;
  infty::Trainer<float> trainer_;
  infty::TextBatch segment_;  // of the last step
  support::gpt2::LossInParts parts_;
  std::chrono::steady_clock::time_point start_;
};

/// The settings with as many steps as the hours or the epochs make. Hours are made steps by the
/// speed of the first ones, which are then forgotten. Throws infty::ValueError where the rate would
/// rise longer than that.
template <class Job>
Job with_steps(Job s, const Material& material) {
  if (s.hours > 0) {
    const support::InterruptGuard interrupt;
    Job tried = s;
    tried.steps = support::most_of_all;
    tried.schedule = "constant";
    Training<Job> training(tried, material, {});
    constexpr Index least = 4;
    const double seconds = std::min(20., s.hours * 3600 / 20);
    double first = 0;
    const auto measured = [&] { return training.here().seconds - first; };
    std::fprintf(stderr, "measuring the speed of the first steps, for %.3g s\n", seconds);
    const auto stop = [&] {
      support::stop_if_interrupted(
          [] { return std::string("stopped measuring the speed of steps; nothing is saved"); });
      return training.steps() >= least && measured() >= seconds;
    };
    training.run({.stop = stop, .stepped = [&](const infty::TrainStep&, const infty::Progress&) {
                    if (training.steps() == 1) first = training.here().seconds;
                  }});
    const double each = measured() / static_cast<double>(training.steps() - 1);
    s.steps = std::max<Index>(1, static_cast<Index>(s.hours * 3600 / each));
  } else if (s.epochs > 0) {
    s.steps = s.epochs * Batches(material.corpus.train, s.text, s.batch, s.memory.segment,
                                 material.corpus.start)
                             .batches_per_epoch();
  }
  infty::require((s.hours == 0 && s.epochs == 0) || s.schedule == "constant" || s.steps > s.warmup,
                 "gpt2", s.hours > 0 ? "--hours" : "--epochs", " makes ", s.steps,
                 " steps: they must be more than --warmup = ", s.warmup);
  support::validate_training("gpt2", s);
  return s;
}

}  // namespace gpt2
