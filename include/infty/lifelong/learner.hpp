// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <infty/autograd/clone.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/lifelong/episodic_memory.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/clip.hpp>

namespace infty {

/// Constants of a `Learner`.
struct LearnerConfig {
  AdamConfig adam = {};                      ///< of the optimiser
  double max_norm = math::infinity<double>;  ///< what gradients are clipped to, > 0
  EpisodicConfig memory = {};                ///< of the episodic memory
  Index seed = 0;                            ///< of what methods draw
};

/// What every method of lifelong learning has in its hands: a model that is a `Predictor`, its
/// optimiser, the network that makes keys, frozen as the model was at first, the episodic memory,
/// and random numbers. `Memory` is an `EpisodicMemory`, maybe with another search.
template <class Model,
          class Memory = EpisodicMemory<typename Model::Scalar, typename Model::BackendType>>
class Learner {
 public:
  using T = typename Model::Scalar;       ///< of the numbers
  using B = typename Model::BackendType;  ///< of the parameters
  using ModelType = Model;                ///< the predictor

  Model model;        ///< learns
  Adam<T, B> adam;    ///< of the model's parameters
  Model key_network;  ///< a copy of the model as it was given, which does not learn
  Memory memory;      ///< examples under its keys
  Random random;      ///< what methods draw of while they learn
  /// The score of an example for the rule `score`; without one 1 - p(labels), how unsure the model
  /// is.
  std::function<double(const Example&)> score = {};

  /// Takes a model and copies it for the keys. @param key_dim  d, width of its vectors
  /// @throws infty::ValueError for a bad configuration
  Learner(Model model_, Index key_dim, LearnerConfig config)
      : model(std::move(model_)),
        adam(model, config.adam),
        key_network(clone(std::as_const(model))),
        memory(key_dim, config.memory),
        random((require_at_least("LearnerConfig", "seed", config.seed, 0),
                static_cast<std::uint64_t>(config.seed))),
        config_(std::move(config)) {
    detail::check_max_norm(config_.max_norm);
  }

  /// The constants as given.
  const LearnerConfig& config() const { return config_; }

  /// Leaves the gradient of the mean loss of examples in the model's parameters, in the place of
  /// what was there. @throws what `Predictor::loss` does
  void differentiate(std::span<const Example> examples) {
    adam.zero_grad();
    Tape tape;
    tape.backward(model.loss(examples));
  }

  /// Clips the gradients and takes a step along them.
  /// @throws infty::NonFiniteError that names a parameter, or the norm of gradients whose squares
  /// are not finite; then nothing has changed but gradients
  void step() {
    const double norm = clip_grad_norm(adam.parameters(), config_.max_norm);
    require<NonFiniteError>(detail::has_square<T>(norm, config_.max_norm), "Learner::step",
                            "the gradients' norm is ", norm, ", whose square is no number in Adam");
    adam.step();
  }

  /// A step down the mean loss of examples. @throws as `differentiate` and `step`
  void train_on(std::span<const Example> examples) {
    differentiate(examples);
    step();
  }

  /// Offers examples to the memory, by the rule `score` with the scores that `score` gives.
  /// @throws what the model and the memory do
  void write(std::span<const Example> examples) {
    if (examples.empty()) return;
    std::vector<double> scores;
    if (memory.config().rule == WriteRule::score && score)
      for (const Example& example : examples) scores.push_back(score(example));
    else if (memory.config().rule == WriteRule::score)
      for (const double loss : model.losses(examples)) scores.push_back(-std::expm1(-loss));
    memory.write(key_network.keys(examples), examples, scores);
  }

  /// The places in the memory of the k examples that are nearest to each one, the nearest first.
  /// @throws likewise
  std::vector<std::vector<Index>> nearest(std::span<const Example> examples, Index k) const {
    if (examples.empty()) return {};
    return memory.nearest(key_network.keys(examples), k);
  }

 private:
  LearnerConfig config_;
};

/// What is answered to each of some examples: labels.
using Answers = std::vector<std::vector<Index>>;

/// A method of lifelong learning. `learn` takes the next batch of the stream, which comes once and
/// does not say which task it is of; `answer` answers to examples, whose labels it does not look
/// at, and leaves model and memory as they are. One that wants the stream shuffled has a member
/// `static constexpr bool shuffled = true`.
template <class M, class L>
concept LifelongMethod = requires(M& method, L& learner, std::span<const Example> examples) {
  method.learn(learner, examples);
  { method.answer(learner, examples) } -> std::same_as<Answers>;
};

}  // namespace infty
