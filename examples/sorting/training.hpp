// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <string>
#include <type_traits>
#include <vector>

#include <infty/model/objective.hpp>
#include <infty/nn/sampling.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/trainer.hpp>

#include "../support/contracted.hpp"
#include "../support/json.hpp"
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

  Training(const Settings& settings, std::string name, const support::Saving& saving = {})
      : settings_(settings),
        name_(std::move(name)),
        task_(settings.task),
        model_(model_config(settings), memory_config_of<LongTerm>(settings, name_),
               infty::Random(settings.seed)),
        sequences_(settings.seed, 1),
        dropout_(settings.seed, 3),
        trainer_(model_, trainer_config(settings, saving), name_ + '.') {
    trainer_.keep("sequences", sequences_).keep("dropout", dropout_);
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
    typename Model::V logits;
    infty::SortingBatch batch;
    options.stepped = [&](const infty::TrainStep& step, const infty::Progress& progress) {
      history_.loss.push_back(step.loss);
      history_.accuracy.push_back(
          infty::accuracy(infty::argmax(logits.value()).to_vector(), batch.answer));
      history_.seconds += watch.seconds();
      if (stepped) stepped(step, progress);
    };
    return trainer_.run(
        [&] {
          watch = Stopwatch();
          batch = task_.sample(settings_.batch, sequences_);
          return loss(batch, logits);
        },
        options);
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

  /// All that is needed to go on.
  void save(infty::SafetensorsWriter& writer) const {
    trainer_.save(writer);
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
  /// The loss of a batch's answers; the scores of every symbol go to `logits`.
  typename Model::V loss(const infty::SortingBatch& batch, typename Model::V& logits) {
    const Index rows = settings_.batch, n = settings_.task.symbols;
    const Tokens<B> input = last_segment<B>(settings_, batch.answer, rows, n);
    const Tokens<B> targets = make_tokens<B>(rows, n, [&](Index row, Index i) {
      return batch.answer[static_cast<std::size_t>(row * n + i)];
    });
    auto state = read_sequences(model_, settings_, batch, rows, steps() * rows);
    infty::Pass<T, B> pass{.random = settings_.model.dropout > 0 ? &dropout_ : nullptr};
    logits = model_.logits(model_.forward(state, input, pass));
    return infty::regularised(cross_entropy(logits, targets), pass,
                              {{"divergence", settings_.kl_weight}});
  }

  const Settings& settings_;
  std::string name_;
  infty::SortingTask task_;
  Model model_;
  infty::Random sequences_, dropout_;
  infty::Trainer<T, B> trainer_;
  History history_;
};

}  // namespace sorting
