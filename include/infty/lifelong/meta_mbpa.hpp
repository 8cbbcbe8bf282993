// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <infty/lifelong/experience_replay.hpp>
#include <infty/lifelong/local_adaptation.hpp>

namespace infty {

/// Learns to be adapted: Meta-MbPA [Wang et al. 2020]. Each example of a batch, and each that is
/// replayed, is learned where one step on its K neighbours leads, θ̃_x = θ - α ∇ L_LA(θ; N_x); the
/// gradient is the first-order one, that of θ̃_x. For questions the model adapts once for all of
/// them, L steps on K random examples each, the whole memory being their neighbourhood. The memory
/// is to be written by `WriteRule::diversity`.
template <class Model>
class MetaMbpa {
 public:
  using T = typename Model::Scalar;       ///< of the numbers
  using B = typename Model::BackendType;  ///< of the parameters

  /// @param together  examples that adapt together while it learns, to the neighbours of all of
  /// them: 1 is the paper's, more costs less
  /// @throws infty::ValueError for a bad configuration, or unless together >= 1
  MetaMbpa(SparseReplayConfig replay, LocalAdaptationConfig adaptation, Index together = 1)
      : replay_((replay.validate(), std::move(replay))),
        adaptation_((adaptation.validate(), std::move(adaptation))),
        together_(together) {
    require_at_least("MetaMbpa", "together", together, 1);
  }

  /// A step on a batch, which is then offered to the memory, and the steps of replay that are due.
  /// @throws infty::ValueError if there are no examples; what model and memory do
  template <class Memory>
  void learn(Learner<Model, Memory>& learner, std::span<const Example> batch) {
    train_on(learner, batch);
    const Index before = learner.memory.offered();
    learner.write(batch);
    for (Index i = replay_.times(before, learner.memory.offered()); i > 0; --i)
      if (learner.memory.size() > 0)
        train_on(learner,
                 learner.memory.examples(learner.memory.draw(replay_.drawn(), learner.random)));
  }

  /// What the model answers that has adapted once. @throws what model and memory do
  template <class Memory>
  Answers answer(Learner<Model, Memory>& learner, std::span<const Example> examples) {
    LocalAdaptation<Model> local(learner.model, adaptation_);
    Random draws = learner.random.split(0);  // so that answering moves nothing on
    for (Index i = 0; i < adaptation_.steps && learner.memory.size() > 0; ++i)
      local.step(learner.memory.examples(learner.memory.draw(adaptation_.neighbours, draws)));
    return local.adapted().answers(examples);
  }

  /// Leaves the first-order gradient of the meta-loss of examples in the model's parameters: the
  /// mean over x of that of l(f(x)) at θ̃_x.
  /// @throws infty::ValueError if there are no examples; what model and memory do
  template <class Memory>
  void differentiate(Learner<Model, Memory>& learner, std::span<const Example> examples) {
    require(!examples.empty(), "MetaMbpa", "there are no examples");
    LocalAdaptation<Model> local(learner.model, adaptation_);
    learner.adam.zero_grad();
    const auto nearest = learner.nearest(examples, adaptation_.neighbours);
    const auto n = static_cast<Index>(examples.size());
    for (Index begin = 0, size; begin < n; begin += size) {
      size = (std::min)(together_, n - begin);
      std::vector<Example> context;
      for (Index i = begin; i < begin + size; ++i)
        for (const Index place : nearest[static_cast<std::size_t>(i)])
          context.push_back(learner.memory.example(place));
      local.reset();
      if (!context.empty()) local.step(context);
      local.differentiate(
          examples.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size)));
      add_gradients(learner.adam.parameters(), local.parameters(),
                    static_cast<double>(size) / static_cast<double>(n));
    }
  }

 private:
  template <class Memory>
  void train_on(Learner<Model, Memory>& learner, std::span<const Example> examples) {
    differentiate(learner, examples);
    learner.step();
  }

  SparseReplayConfig replay_;
  LocalAdaptationConfig adaptation_;
  Index together_;
};

}  // namespace infty
