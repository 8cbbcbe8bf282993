// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/train/loss_in_parts.hpp>
#include <infty/train/trainer.hpp>

#include "../support/behind.hpp"
#include "../support/interrupt.hpp"
#include "../support/json.hpp"
#include "../support/training.hpp"
#include "corpus.hpp"

namespace dialogue {

/// What a training is of, and how far it has come beside steps: what a checkpoint has of it.
struct Position {
  std::string data, base;  ///< what tells them from others
  std::uint64_t log_bytes = 0;
  Index tokens = 0;  ///< that were predicted
  double seconds = 0;
};

template <class See>
void each_field(Position& position, See&& see) {
  see("data", position.data);
  see("base", position.base);
  see("log_bytes", position.log_bytes);
  see("tokens", position.tokens);
  see("seconds", position.seconds);
}

/// A training of one form: a dialogue a step, its chunks one behind the other from a fresh state,
/// each going backward by itself.
class Training {
 public:
  Training(const Settings& s, const Corpus& corpus, const Files& files,
           const support::Saving& saving)
      : settings_(s),
        corpus_(corpus),
        dialogues_(first_count(s, corpus)),
        here_{.data = fingerprint_of(corpus), .base = corpus.base},
        model_(begin_model(s, files, corpus)),
        dropout_(s.seed, 3),
        trainer_(model_->named_parameters(), {.steps = s.epochs * dialogues_,
                                              .adam = s.adam,
                                              .schedule = infty::RateSchedule::linear,
                                              .last_rate = s.last_rate,
                                              .max_norm = s.clip,
                                              .save_every = saving.every,
                                              .save_minutes = saving.minutes}) {
    if (s.memory_rate > 0 && !is_plain(s.form) && s.adam.learning_rate > 0)
      trainer_.scale_rate(".mixer.memory.", s.memory_rate / s.adam.learning_rate);
    trainer_.keep_settings(support::to_json(s).dump(), support::before_they_were().dump())
        .keep("dropout", dropout_);
    trainer_.keep_text(
        "position", [this] { return support::json_of(here_).dump(); },
        [this](const std::string& text) {
          const auto there = support::parse<Position>(text, "the checkpoint's position");
          infty::require(there.data == here_.data && there.base == here_.base, "dialogue",
                         "the checkpoint is of a run on another text, or of another --base: give "
                         "another --out, or --fresh to begin anew");
          return [this, there] { here_ = there; };
        });
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  const Model& model() const { return *model_; }
  const Settings& settings() const { return settings_; }
  Index steps() const { return trainer_.steps(); }
  Index all_steps() const { return trainer_.config().steps; }
  /// Steps behind which the model is validated.
  Index validate_every() const {
    return settings_.evaluate_every > 0 ? settings_.evaluate_every : dialogues_;
  }
  /// Times that all dialogues were read, and of the last step its loss in nats a token, and tokens.
  Index epoch() const { return (steps() - 1) / dialogues_; }
  double loss() const { return loss_; }
  Index step_tokens() const { return step_tokens_; }
  const Position& position() const { return here_; }

  /// Trains on. Returns whether all steps are done.
  bool run(infty::TrainerRun options) {
    const auto stepped = std::move(options.stepped);
    double since = support::computed();
    options.stepped = [&](const infty::TrainStep& step, const infty::Progress& progress) {
      here_.tokens += step_tokens_;
      const double now = support::computed();
      here_.seconds += now - std::exchange(since, now);
      stepped(step, progress);
    };
    return trainer_.run([this] { return objective(); }, options);
  }

  /// @param log_bytes  how long the log is, if there is one
  void save(const std::filesystem::path& path, std::uint64_t log_bytes = 0) {
    here_.log_bytes = log_bytes;
    trainer_.save(path);
  }
  /// Goes on from a checkpoint of this run. Throws infty::Error for a damaged one, or another's.
  void load(const std::filesystem::path& path) { trainer_.load(path); }

 private:
  static Index first_count(const Settings& s, const Corpus& corpus) {
    const auto all = std::ssize(corpus.train.dialogues);
    return s.dialogues > 0 ? std::min(s.dialogues, all) : all;
  }

  /// The dialogue of a step: every epoch has an order of its own.
  const Encoded& dialogue_of(Index step) {
    const Index epoch = step / dialogues_;
    if (order_.empty() || epoch != order_epoch_) {
      order_.resize(static_cast<std::size_t>(dialogues_));
      std::iota(order_.begin(), order_.end(), std::size_t{0});
      infty::Random random =
          infty::Random(settings_.seed, 1).split(static_cast<std::uint64_t>(epoch));
      for (Index i = dialogues_ - 1; i > 0; --i)
        std::swap(order_[static_cast<std::size_t>(i)],
                  order_[static_cast<std::size_t>(random.below(i + 1))]);
      order_epoch_ = epoch;
    }
    return corpus_.train.dialogues[order_[static_cast<std::size_t>(step % dialogues_)]];
  }

  /// The sum of the chunks' mean losses, as the program has it, with the losses of the memory.
  infty::Variable<float> objective() {
    const Encoded& dialogue = dialogue_of(steps());
    auto state = model_->make_state(1, steps());
    infty::LossInParts<float> loss;
    double nats = 0;
    step_tokens_ = 0;
    const auto sequence =
        sequence_of(dialogue, dialogue.turns.size(), seen_by(settings_), corpus_.tokenizer.marks());
    for (const Chunk& chunk : predicted_chunks(sequence, model_->memory().segment, true))
      loss.add([&] {
        const auto made =
            model_->objective(state, batch_of(chunk), settings_.weights, &dropout_, chunk.types);
        nats +=
            static_cast<double>(made.loss.value().item()) * static_cast<double>(chunk.predicted);
        step_tokens_ += chunk.predicted;
        return made.total;
      });
    loss_ = nats / static_cast<double>(step_tokens_);
    return loss.total();
  }

  Settings settings_;
  const Corpus& corpus_;
  Index dialogues_;
  Position here_;
  std::unique_ptr<Model> model_;
  infty::Random dropout_;
  infty::Trainer<float> trainer_;
  std::vector<std::size_t> order_;
  Index order_epoch_ = 0, step_tokens_ = 0;
  double loss_ = 0;
};

}  // namespace dialogue
