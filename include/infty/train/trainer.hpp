// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/finite.hpp>
#include <infty/core/needs.hpp>
#include <infty/core/random.hpp>
#include <infty/io/settings.hpp>
#include <infty/parallel/messages.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/named_parameters.hpp>
#include <infty/train/progress.hpp>
#include <infty/train/rank_checkpoint.hpp>
#include <infty/train/shard_step.hpp>
#include <infty/train/train_step.hpp>
#include <infty/train/trainer_config.hpp>
#include <infty/train/trainer_run.hpp>

namespace infty {

/// A training that can be stopped anywhere and gone on with: steps of Adam by a schedule, and one
/// checkpoint of everything that the next step depends on. The parameters, the optimiser and the
/// step are the trainer's own; the states of memories, random generators and the place in the data
/// belong to whoever trains, who has them kept:
///
///     Trainer trainer(model, {.steps = 1000});
///     trainer.keep("state.", state).keep("dropout", random);
///     trainer.keep_text("position", [&] { return ...; }, [&](const std::string& text) { ... });
///     if (std::filesystem::exists(path)) trainer.load(path);
///     trainer.run([&] { return ...; }, {.save = [&] { trainer.save(path); }});
///
/// A run that went on from a checkpoint is bit for bit one that was never stopped.
///
/// On ranks each has a trainer, keeps what its own shards need by `keep_own`, and steps, runs and
/// saves with its `Shards`: all together, one checkpoint, which any number of them goes on from.
template <class T, class Backend = EigenBackend>
class Trainer {
 public:
  using Parameters = std::vector<NamedParameter<T, Backend>>;  ///< handles, with their names
  /// Puts what was read in its place; throws nothing.
  using Apply = std::function<void()>;

  /// Trains these parameters, with Adam.
  /// @param prefix  of all names in checkpoints but "settings", so that several trainings of one
  ///                program can share one
  /// @throws infty::ValueError for a bad configuration
  explicit Trainer(Parameters parameters, TrainerConfig config = {}, std::string prefix = "")
      : config_((config.validate(), std::move(config))),
        prefix_(std::move(prefix)),
        handles_{std::move(parameters)},
        adam_(handles_, config_.adam) {}

  /// Trains all parameters of a layer. @throws as above
  template <class L>
  explicit Trainer(L& model, TrainerConfig config = {}, std::string prefix = "")
      : Trainer(named_parameters<T, Backend>(model), std::move(config), std::move(prefix)) {
    static_assert(Layer<L>, "Trainer: the layer" INFTY_NO_VISIT);
  }

  /// The constants as given.
  const TrainerConfig& config() const { return config_; }
  /// Steps that are done.
  Index steps() const { return adam_.steps(); }
  /// The optimiser, and through it the parameters.
  const Adam<T, Backend>& optimizer() const { return adam_; }

  /// Has all parameters whose names hold `part` step with a fixed learning rate of their own, their
  /// gradients clipped apart, as `Adam::fix_rate`. @throws infty::ValueError if there is none, or
  /// for a bad rate
  Trainer& fix_rate(std::string_view part, double learning_rate) {
    adam_.fix_rate(part, learning_rate);
    return *this;
  }

  /// Has all parameters whose names hold `part` step with so many times the schedule's rate, as
  /// `Adam::scale_rate`. @throws infty::ValueError if there is none, or for a bad number
  Trainer& scale_rate(std::string_view part, double times) {
    adam_.scale_rate(part, times);
    return *this;
  }

  /// Shares the optimiser's state out over ranks, of which each has a part, as `Adam::share_out`:
  /// the bits are the same, and so are checkpoints, which any number of ranks goes on from, with or
  /// without this. It comes before `load` and the first step. @throws as that
  template <Communicator C>
  Trainer& share_out(const C& ranks) {
    adam_.share_out(ranks.rank(), ranks.size());
    return *this;
  }

  /// Keeps the settings of the program, a JSON object, as the checkpoint's metadata "settings"; a
  /// checkpoint of others is refused by the name of the first that differs.
  /// @param before  what settings were that an older checkpoint may lack, likewise an object
  /// @throws infty::IoError for what is neither empty nor a JSON object
  Trainer& keep_settings(std::string json, std::string before = "{}") {
    for (const std::string* const text : {&json, &before})
      if (!text->empty()) detail::json_members(*text, "keep_settings");
    settings_ = std::move(json);
    settings_before_ = before.empty() ? "{}" : std::move(before);
    return *this;
  }

  /// Keeps a random generator. It must live as long as this.
  Trainer& keep(const std::string& name, Random& random) {
    return keep_tensors([&random, name = prefix_ + name](
                            SafetensorsWriter& writer) { save_random(writer, random, name); },
                        [&random, name = prefix_ + name](CheckpointLoader& loader) {
                          loader.random(random, name);
                        });
  }

  /// Keeps a memory's state, by the names of its members behind `name`. It must live as long as
  /// this.
  template <class State>
  Trainer& keep(const std::string& name, State& state) {
    return keep_tensors(
        [&state, name = prefix_ + name](SafetensorsWriter& writer) {
          save_state(writer, state, name);
        },
        [&state, name = prefix_ + name](CheckpointLoader& loader) { loader.state(state, name); });
  }

  /// Keeps what else is made of tensors: `save` adds them to a writer, `load` takes them from a
  /// loader, which applies them.
  Trainer& keep_tensors(std::function<void(SafetensorsWriter&)> save,
                        std::function<void(CheckpointLoader&)> load) {
    kept_.push_back({std::move(save), [load = std::move(load)](CheckpointLoader& loader) {
                       load(loader);
                       return Apply();
                     }});
    return *this;
  }

  /// Keeps a text, such as the place in the data, as metadata: `save` says it, `load` checks what
  /// the file says, changes nothing, and returns what puts it in its place.
  Trainer& keep_text(const std::string& name, std::function<std::string()> save,
                     std::function<Apply(const std::string& text)> load) {
    kept_.push_back({[save = std::move(save), name = prefix_ + name](SafetensorsWriter& writer) {
                       writer.metadata(name, save());
                     },
                     [load = std::move(load), name = prefix_ + name](CheckpointLoader& loader) {
                       return load(loader.file().metadata(name));
                     }});
    return *this;
  }

  /// Keeps what is this rank's own, such as the states and the random generators of its shards,
  /// under names that no other rank has: `save` on ranks gathers it, `load` takes it.
  Trainer& keep_own(std::function<void(SafetensorsWriter&)> save,
                    std::function<void(CheckpointLoader&)> load) {
    keep_tensors(std::move(save), std::move(load));
    kept_.back().own = true;
    return *this;
  }

  /// Takes a step along the gradient of `loss()`, a scalar variable, with the schedule's rate.
  /// @throws as `train_step`; then parameters and optimiser are as they were, though what `loss`
  /// has drawn and read is not
  template <class Loss>
  TrainStep step(Loss&& loss) {
    return train_step(adam_, step_config(), std::forward<Loss>(loss));
  }

  /// Takes a step along the gradient of the sum of `loss(shard)` over all shards, of which this
  /// rank computes its own. @throws as `train_step` of shards
  template <Communicator C, class Loss>
  TrainStep step(const Shards<C>& shards, Loss&& loss) {
    return train_step(adam_, step_config(), shards, std::forward<Loss>(loss));
  }

  /// Takes all steps that are left, or stops where it is asked to; saves then and every so often.
  /// @return  whether all steps are done; false where it was asked to stop, behind the last one,
  /// too
  /// @throws infty::ValueError where more steps are done than there are, and as `step` and what it
  /// calls: behind NaN, the last checkpoint is the last good one
  template <class Loss>
  bool run(Loss&& loss, const TrainerRun& options = {}) {
    return detail::run_steps(
        config_, [this] { return steps(); }, [&] { return step(loss); },
        [](bool asked) { return asked; }, options);
  }

  /// The same on ranks, with `loss(shard)`: all stop, or save, behind the same step, where one of
  /// them is asked to or finds that it is time. @throws as `step`
  template <Communicator C, class Loss>
  bool run(const Shards<C>& shards, Loss&& loss, const TrainerRun& options = {}) {
    return detail::run_steps(
        config_, [this] { return steps(); }, [&] { return step(shards, loss); },
        [&](bool asked) { return any_rank(shards.ranks(), asked); }, options);
  }

  /// Adds everything to a checkpoint: the parameters as PREFIX"model.", the optimiser as
  /// PREFIX"optimizer.", and what is kept. @throws infty::NonFiniteError that names the first
  /// parameter that is not finite, so that no good checkpoint is replaced; infty::IoError
  void save(SafetensorsWriter& writer) const {
    require(adam_.owners().empty(), "Trainer::save",
            "the optimiser's state is shared out over ranks: they save together");
    save_shared(writer);
    save_own(writer);
  }

  /// Writes a checkpoint, which replaces an old one when it is complete. @throws as above
  void save(const std::filesystem::path& path) const {
    SafetensorsWriter writer;
    save(writer);
    writer.save(path);
  }

  /// Writes the one checkpoint of all ranks, which call this together, and returns when it is
  /// there.
  /// @throws as above on the first rank, which writes; infty::ValueError on all if their parameters
  /// differ; infty::CommunicationError
  template <Communicator C>
  void save(const std::filesystem::path& path, C& ranks) const {
    SafetensorsWriter writer;
    save(writer, ranks);
    if (ranks.rank() == 0) writer.save(path);
    ranks.barrier();
  }

  /// Adds all of it to the first rank's writer; others get what is their own. @throws likewise
  template <Communicator C>
  void save(SafetensorsWriter& writer, C& ranks) const {
    if (ranks.size() > 1)
      require_same(ranks, "the parameters", detail::fingerprint_of(adam_.parameters()));
    save_own(writer);
    if (ranks.rank() > 0 && !adam_.owners().empty())
      save_optimizer(writer, detail::MomentsOf<Adam<T, Backend>>{adam_}, prefix_ + "optimizer.");
    gather_tensors(ranks, writer);
    if (ranks.rank() == 0) save_shared(writer);
  }

  /// Goes on from a checkpoint: all of it is taken, or nothing.
  /// @throws infty::IoError that names what is missing, damaged, too much, or another setting
  void load(const std::filesystem::path& path) {
    CheckpointLoader loader(path);
    if (!settings_.empty())
      require_same_settings(loader.file().metadata("settings"), settings_, path.string(),
                            settings_before_);
    loader.parameters(handles_, prefix_ + "model.").optimizer(adam_, prefix_ + "optimizer.");
    std::vector<Apply> texts;
    for (const Kept& kept : kept_) texts.push_back(kept.load(loader));
    loader.apply();
    for (const Apply& apply : texts)
      if (apply) apply();
  }

 private:
  /// How the next step is taken.
  TrainStepConfig step_config() const {
    return {.learning_rate = config_.rate(steps()), .max_norm = config_.clipped_norm()};
  }

  /// What is the same on all ranks.
  void save_shared(SafetensorsWriter& writer) const {
    for (const auto& [name, variable] : adam_.parameters())
      require<NonFiniteError>(detail::all_finite(variable.value()), "Trainer::save", "behind step ",
                              steps(), ": parameter ", name, " is not finite");
    save_parameters(writer, handles_, prefix_ + "model.");
    save_optimizer(writer, adam_, prefix_ + "optimizer.");
    for (const Kept& kept : kept_)
      if (!kept.own) kept.save(writer);
    if (!settings_.empty()) writer.metadata("settings", settings_);
  }
  void save_own(SafetensorsWriter& writer) const {
    for (const Kept& kept : kept_)
      if (kept.own) kept.save(writer);
  }

  /// The parameters as a layer.
  struct Handles {
    Parameters parameters;

    template <class Visitor>
    void visit(Visitor&& see) {
      for (auto& parameter : parameters) see(parameter.name, parameter.variable);
    }
  };

  struct Kept {
    std::function<void(SafetensorsWriter&)> save;
    std::function<Apply(CheckpointLoader&)> load;
    bool own = false;
  };

  TrainerConfig config_;
  std::string prefix_, settings_, settings_before_;
  Handles handles_;
  Adam<T, Backend> adam_;
  std::vector<Kept> kept_;
};

/// A trainer of parameters has their scalar and backend.
template <class T, class B>
Trainer(std::vector<NamedParameter<T, B>>, TrainerConfig = {}, std::string = "") -> Trainer<T, B>;
/// A trainer of a layer has those of its variables, `L::V`.
template <class L>
Trainer(L&, TrainerConfig = {}, std::string = "")
    -> Trainer<typename L::V::Scalar, typename L::V::BackendType>;

}  // namespace infty
