// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <infty/model/objective.hpp>
#include <infty/model/settings.hpp>
#include <infty/nn/sampling.hpp>
#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/trainer.hpp>

#include "../support/contracted.hpp"
#include "../support/json.hpp"
#include "../support/sharing.hpp"
#include "evaluation.hpp"

namespace sorting {

/// Loss and teacher-forced accuracy of every training batch. A batch is scored before anything is
/// learned from it, and no sequence comes twice: so this is accuracy on sequences never seen.
struct History {
  std::vector<double> loss, accuracy;
  double seconds = 0;  ///< of training
};

template <class See>
void each_field(History& history, See&& see) {
  see("loss", history.loss);
  see("accuracy", history.accuracy);
  see("seconds", history.seconds);
}

/// Throws infty::IoError unless the history is of so many steps; `where` begins the message.
inline void require_steps(const History& history, Index steps, const std::string& where) {
  infty::require<infty::IoError>(
      std::ssize(history.loss) == steps && std::ssize(history.accuracy) == steps, "sorting", where,
      " has ", history.loss.size(), " losses and ", history.accuracy.size(), " accuracies of ",
      steps, " steps");
}

/// What is reported of a trained model.
struct ModelResult {
  std::string name;
  Index parameters = 0, steps = 0;
  double accuracy = 0, tau = 0, free_accuracy = 0, free_tau = 0;
  std::vector<double> accuracy_by_place, free_accuracy_by_place;
  std::vector<std::vector<double>> attention;  ///< [layers][bins]; none without an LTM
  Index memory_writes = 0;
  History history;
  double evaluation_seconds = 0;
  std::size_t peak_tensor_bytes = 0;  ///< of memory for tensors, at any one time
};

template <class See>
void each_field(ModelResult& result, See&& see) {
  see("name", result.name);
  see("parameters", result.parameters);
  see("steps", result.steps);
  see("accuracy", result.accuracy);
  see("tau", result.tau);
  see("free_accuracy", result.free_accuracy);
  see("free_tau", result.free_tau);
  see("accuracy_by_place", result.accuracy_by_place);
  see("free_accuracy_by_place", result.free_accuracy_by_place);
  see("attention", result.attention);
  see("memory_writes", result.memory_writes);
  see("history", result.history);
  see("evaluation_seconds", result.evaluation_seconds);
  see("peak_tensor_bytes", result.peak_tensor_bytes);
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// What the memory of a model is made of, of the kind that it is.
template <class LongTerm>
infty::WithMemoryConfig<infty::ShortTermConfig, typename LongTerm::Config> memory_config_of(
    const Settings& s, const std::string& name) {
  const infty::InftyConfig config = memory_config(s, name);
  if constexpr (std::is_same_v<typename LongTerm::Config, infty::LongTermConfig>)
    return config;
  else if constexpr (requires(typename LongTerm::Config c) { c.parts; })
    return {config.attention,
            support::mixed_config(*config.memory, s.contraction, contraction_of(s, name))};
  else
    return {config.attention, support::uniform_config(*config.memory, s.contraction)};
}

/// A model that is being trained. All that the next step depends on is saved and loaded, by any
/// backend.
template <class T, class Density, class B, template <class> class Basis = infty::GaussianBasis,
          class LongTerm = infty::LongTermMemory<T, Density, Basis<T>, B>>
class Training {
 public:
  using Model = infty::TransformerLM<infty::WithMemory<infty::ShortTermMemory<T, B>, LongTerm>>;

  Training(const Settings& settings, std::string name, const support::Saving& saving = {},
           const infty::AnyCommunicator& ranks = {}, const support::Sharing& sharing = {})
      : settings_(settings),
        name_(std::move(name)),
        task_(settings.task),
        model_(model_config(settings), memory_config_of<LongTerm>(settings, name_),
               infty::Random(settings.seed)),
        sequences_(settings.seed, 1),
        ranks_(ranks),
        trainer_(model_, trainer_config(settings, saving), name_ + '.') {
    const infty::Random dropout(settings.seed, 3);
    if (settings.shards == 0) {
      parts_.push_back({{0, settings.batch}, name_ + ".dropout", dropout});
    } else {
      shards_.emplace(ranks_, settings.shards, infty::value_of<infty::Reduction>(settings.reduce),
                      sharing.bucket_bytes());
      for (Index shard = shards_->own().first; shard < shards_->own().last; ++shard)
        parts_.push_back({shards_->rows_of(shard, settings.batch),
                          name_ + ".shards." + std::to_string(shard) + ".dropout",
                          dropout.split(static_cast<std::uint64_t>(shard))});
    }
    if (sharing.zero && ranks_.size() > 1) trainer_.share_out(ranks_);
    trainer_.keep("sequences", sequences_);
    trainer_.keep_own(
        [this](infty::SafetensorsWriter& writer) {
          for (const Part& part : parts_)
            infty::save_random(writer, part.dropout, part.dropout_name);
        },
        [this](infty::CheckpointLoader& loader) {
          for (Part& part : parts_) loader.random(part.dropout, part.dropout_name);
        });
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  const std::string& name() const { return name_; }
  Index steps() const { return trainer_.steps(); }
  const History& history() const { return history_; }
  Model& model() { return model_; }

  /// Trains on sequences of its own: reads them, then learns from the last segment alone. Returns
  /// whether all steps are done; `options.stepped` is called behind each.
  bool run(infty::TrainerRun options) {
    const auto stepped = std::move(options.stepped);
    Stopwatch watch;
    options.stepped = [&](const infty::TrainStep& step, const infty::Progress& progress) {
      std::vector<double> accuracy;
      for (const Part& part : parts_)
        accuracy.push_back(
            infty::accuracy(infty::argmax(part.logits.value()).to_vector(), part.batch.answer) *
            share_of(part));
      sequences_.seek(sequences_.counter() + static_cast<std::uint64_t>(settings_.batch));
      history_.loss.push_back(step.loss);
      history_.accuracy.push_back(shards_ ? shards_->sum_of(accuracy) : accuracy.front());
      history_.seconds += watch.seconds();
      if (stepped) stepped(step, progress);
    };
    const auto loss_of = [&](Index shard) {
      Part& part = parts_[static_cast<std::size_t>(shard - (shards_ ? shards_->own().first : 0))];
      if (&part == &parts_.front()) watch = Stopwatch();
      infty::Random draws = sequences_;  // of each sequence, one
      draws.seek(draws.counter() + static_cast<std::uint64_t>(part.rows.first));
      part.batch = task_.sample(part.rows.count(), draws);
      return loss(part);
    };
    return shards_ ? trainer_.run(*shards_, loss_of, options)
                   : trainer_.run([&] { return loss_of(0); }, options);
  }

  /// `done(sequences)` is called behind each batch that was evaluated; may throw.
  template <class Done>
  ModelResult result(Done&& done) {
    const Stopwatch watch;
    const Evaluation found = evaluate<Density>(model_, settings_, done);
    return {.name = name_,
            .parameters = infty::count_parameters(model_),
            .steps = steps(),
            .accuracy = found.forced.accuracy(),
            .tau = found.forced.tau(),
            .free_accuracy = found.free.accuracy(),
            .free_tau = found.free.tau(),
            .accuracy_by_place = found.forced.by_place(),
            .free_accuracy_by_place = found.free.by_place(),
            .attention = found.attention.layers,
            .memory_writes = found.attention.writes,
            .history = history_,
            .evaluation_seconds = watch.seconds()};
  }

  /// The parameters, as NAME.model.*.
  void save_model(infty::SafetensorsWriter& writer) const {
    infty::save_parameters(writer, model_, name_ + ".model.");
  }

  /// All that is needed to go on, on all ranks together: the first rank's writer gets it.
  void save(infty::SafetensorsWriter& writer, infty::AnyCommunicator& ranks) const {
    trainer_.save(writer, ranks);
    writer.metadata("history." + name_, support::json_of(history_).dump());
  }

  /// Goes on from what `save` wrote.
  void load(const std::filesystem::path& path) {
    const infty::SafetensorsFile file(path);
    const std::string key = "history." + name_, where = path.string() + ": " + key;
    auto history = support::parse<History>(file.metadata(key), where);
    trainer_.load(path);
    require_steps(history, steps(), where);
    history_ = std::move(history);
  }

 private:
  /// Some sequences of the batch, and what is theirs.
  struct Part {
    infty::ShardRange rows;
    std::string dropout_name;
    infty::Random dropout;
    infty::SortingBatch batch = {};  // of the last step
    typename Model::V logits = {};   // of every symbol
  };

  double share_of(const Part& part) const {
    return static_cast<double>(part.rows.count()) / static_cast<double>(settings_.batch);
  }

  /// The loss of a part's answers, by its share of the batch.
  typename Model::V loss(Part& part) {
    const infty::SortingBatch& batch = part.batch;
    const Index rows = part.rows.count(), n = settings_.task.symbols;
    const Tokens<B> input = last_segment<B>(settings_, batch.answer, rows, n);
    const Tokens<B> targets = make_tokens<B>(rows, n, [&](Index row, Index i) {
      return batch.answer[static_cast<std::size_t>(row * n + i)];
    });
    auto state =
        read_sequences(model_, settings_, batch, rows, steps() * settings_.batch + part.rows.first);
    infty::Pass<T, B> pass{.random = settings_.model.dropout > 0 ? &part.dropout : nullptr};
    part.logits = model_.logits(model_.forward(state, input, pass));
    const double share = share_of(part);
    auto own = cross_entropy(part.logits, targets);
    if (share < 1) own = infty::scale(own, static_cast<T>(share));
    return infty::regularised(own, pass, {{"divergence", settings_.kl_weight}});
  }

  const Settings& settings_;
  std::string name_;
  infty::SortingTask task_;
  Model model_;
  infty::Random sequences_;
  infty::AnyCommunicator ranks_;
  std::optional<infty::Shards<infty::AnyCommunicator>> shards_;
  std::vector<Part> parts_;
  infty::Trainer<T, B> trainer_;
  History history_;
};

}  // namespace sorting
