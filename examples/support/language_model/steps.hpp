// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <infty/data/batch_stream.hpp>
#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/train/trainer.hpp>

#include "../json.hpp"
#include "../settings.hpp"
#include "../sharing.hpp"
#include "../training.hpp"
#include "model.hpp"

namespace language_model {

/// What the next step depends on, and what was learned from until now. With --shards a batch is cut
/// into shards of its rows, of which each rank has its own; without, there is one rank and its rows
/// are those of the batch.
class Training {
 public:
  Training(const Settings& s, const Corpus& corpus, const support::Saving& saving,
           const infty::AnyCommunicator& ranks = {}, const support::Sharing& sharing = {})
      : settings_(s),
        here_{.next = {}, .text = corpus.fingerprint, .vocabulary = corpus.tokenizer.fingerprint()},
        model_(make_model(s, corpus.tokenizer.size())),
        retrieved_(&corpus.train.retrieved),
        batches_(corpus.train.stream, {.batch = s.batch,
                                       .segment = s.segment,
                                       .start = corpus.tokenizer.start(),
                                       .reset_documents = s.documents}),
        next_(batches_),
        ranks_(ranks),
        trainer_(model_->named_parameters(), trainer_config(s, saving)) {
    const infty::Random dropout(s.seed, 3);
    if (s.shards == 0) {
      parts_.push_back({{0, s.batch}, "", model_->make_state(s.batch), dropout});
    } else {
      shards_.emplace(ranks_, s.shards, infty::value_of<infty::Reduction>(s.reduce),
                      sharing.bucket_bytes());
      for (Index shard = shards_->own().first; shard < shards_->own().last; ++shard) {
        const infty::ShardRange rows = shards_->rows_of(shard, s.batch);
        parts_.push_back({rows, "shards." + std::to_string(shard) + '.',
                          model_->make_state(rows.count(), rows.first),
                          dropout.split(static_cast<std::uint64_t>(shard))});
      }
    }
    if (support::has_product_keys(s.feed) && s.values_rate > 0)
      trainer_.fix_rate(support::product_key_values, s.values_rate);
    if (sharing.zero && ranks_.size() > 1) trainer_.share_out(ranks_);
    trainer_.keep_settings(support::to_json(s).dump(), support::before_they_were().dump());
    trainer_.keep_own(
        [this](infty::SafetensorsWriter& writer) {
          for (const Part& part : parts_) {
            infty::save_random(writer, part.dropout, part.name + "dropout");
            model_->save_state(writer, part.state, part.name + "state.");
          }
        },
        [this](infty::CheckpointLoader& loader) {
          for (Part& part : parts_) {
            loader.random(part.dropout, part.name + "dropout");
            model_->load_state(loader, part.state, part.name + "state.");
          }
        });
    trainer_.keep_text(
        "position", [this] { return position(); },
        [this](const std::string& text) { return taken(text); });
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  const support::Model& model() const { return *model_; }
  support::Model& model() { return *model_; }
  Index steps() const { return trainer_.steps(); }
  Index tokens() const { return here_.tokens; }
  double seconds() const { return here_.seconds; }
  std::uint64_t log_bytes() const { return here_.log_bytes; }

  /// What the last step read, on all ranks: its tokens, the epoch of its last segment, and its
  /// loss, in nats a token.
  Index step_tokens() const { return step_tokens_; }
  Index epoch() const { return epoch_; }
  double loss() const { return loss_; }

  /// Trains on, step by step. Returns whether all steps are done.
  bool run(infty::TrainerRun options) {
    const auto stepped = std::move(options.stepped);
    options.stepped = [&](const infty::TrainStep& step, const infty::Progress& progress) {
      loss_ = shards_ ? shards_->sum_of(losses_) : losses_.front();
      batches_ = next_;
      here_.tokens += step_tokens_;
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start_;
      here_.seconds += time.count();
      stepped(step, progress);
    };
    const auto objective_of = [this](Index shard) {
      Part& part = parts_[static_cast<std::size_t>(shard - (shards_ ? shards_->own().first : 0))];
      if (&part == &parts_.front()) begin();
      return objective(part);
    };
    return shards_ ? trainer_.run(*shards_, objective_of, options)
                   : trainer_.run([&] { return objective_of(0); }, options);
  }

  /// Saves one checkpoint, on all ranks together.
  /// @param log_bytes  how long the log is, on the first rank
  void save(const std::filesystem::path& path, std::uint64_t log_bytes) {
    here_.log_bytes = log_bytes;
    trainer_.save(path, ranks_);
  }

  /// Goes on from a checkpoint of this run. Throws infty::Error for a damaged one.
  void load(const std::filesystem::path& path) { trainer_.load(path); }

 private:
  /// Some rows of the batch, and what is theirs.
  struct Part {
    infty::ShardRange rows;
    std::string name;  // in front of what is kept of it
    support::Model::State state;
    infty::Random dropout;
    std::vector<infty::TextBatch> segments = {};  // of the last step
  };

  /// Begins a step: counts the tokens of all rows, and finds where the next one begins.
  void begin() {
    start_ = std::chrono::steady_clock::now();
    step_tokens_ = 0;
    losses_.clear();
    next_ = batches_;
    for (Index i = 0; i < settings_.bptt; ++i) {
      step_tokens_ += next_.predicted();
      epoch_ = next_.position().epoch;
      next_.skip();
    }
  }

  /// What training on the next segments of a part makes smaller, by its share of the step's
  /// targets. Rows that have come to their ends while others go on have nothing to learn from.
  infty::Variable<float> objective(Part& part) {
    part.segments.clear();
    infty::BatchStream ahead = batches_;
    Index targets = 0;
    for (Index i = 0; i < settings_.bptt; ++i, ahead.skip()) {
      infty::TextBatch segment = ahead.read(part.rows.first, part.rows.count());
      if (segment.length == 0) continue;
      retrieved_->put(segment);
      targets += segment.predicted;
      part.segments.push_back(std::move(segment));
    }
    if (targets == 0) {
      losses_.push_back(0);
      return infty::Variable<float>(infty::Tensor<float>::zeros({}));
    }
    const auto made =
        model_->objective(part.state, part.segments,
                          {.kl_weight = settings_.kl_weight,
                           .auxiliary_weight = settings_.auxiliary_weight,
                           .dropout = settings_.model.dropout > 0 ? &part.dropout : nullptr,
                           .replay = settings_.replay});
    const double share = static_cast<double>(targets) / static_cast<double>(step_tokens_);
    losses_.push_back(static_cast<double>(made.loss.value().item()) * share);
    return share == 1 ? made.total : infty::scale(made.total, static_cast<float>(share));
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
  const RetrievedTokens* retrieved_;
  infty::BatchStream batches_, next_;  // where this step, and the next one, begins
  infty::AnyCommunicator ranks_;
  std::optional<infty::Shards<infty::AnyCommunicator>> shards_;
  std::vector<Part> parts_;
  infty::Trainer<float> trainer_;
  Index step_tokens_ = 0, epoch_ = 0;  // of the last step
  std::vector<double> losses_;         // of its parts
  double loss_ = 0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace language_model
