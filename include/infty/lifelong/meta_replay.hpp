// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <infty/lifelong/experience_replay.hpp>
#include <infty/lifelong/local_adaptation.hpp>

namespace infty {

/// Learns in episodes to learn without forgetting [Holla et al. 2020]: m batches of the stream are
/// the support set, a step of gradient descent each on a copy, and the next batch, or in every
/// R_F-th episode examples of the memory, is the query set, whose gradient at the copy is the
/// model's (first order). With the head adapting alone (`part` "head.") this is OML-ER, with all
/// parameters MAML-ER, and with all but the gates (`without` "gate.") of a model that has a
/// `Neuromodulator` ANML-ER. Questions are answered behind m such steps on random batches of the
/// memory.
template <class Model>
class MetaReplay {
 public:
  using T = typename Model::Scalar;       ///< of the numbers
  using B = typename Model::BackendType;  ///< of the parameters

  /// @param inner  of the inner loop: `steps` is m, and `neighbours` the examples of a batch that
  /// is drawn to answer; λ is to be 0
  /// @throws infty::ValueError for a bad configuration, or unless 1 <= steps <= 2^53
  MetaReplay(SparseReplayConfig replay, LocalAdaptationConfig inner)
      : replay_((replay.validate(), std::move(replay))),
        inner_((inner.validate(), std::move(inner))) {
    require_at_least("MetaReplay", "steps", inner_.steps, 1);
    require(inner_.steps <= detail::most_counted, "MetaReplay", "steps is ", inner_.steps,
            ": it must be at most 2^53");
  }

  /// R_F = ⌈(R_I / b + 1) / (m + 1)⌉, episodes from one replay to the next, of batches of b
  /// examples. @throws infty::ValueError unless b >= 1
  Index episodes(Index b) const {
    require_at_least("MetaReplay::episodes", "b", b, 1);
    return ((replay_.interval - 1) / b + 1) / (inner_.steps + 1) + 1;
  }

  /// Keeps a batch for the support set, or ends the episode with it as the query set: with a step
  /// of the model. An episode of replay ends when its support set is full. Every batch is offered
  /// to the memory. b is the largest batch so far: the last one of a task may be smaller. A batch
  /// that the model cannot take the loss of is kept nowhere. An episode whose step throws is over.
  /// @throws infty::ValueError if there are no examples; what model and memory do
  void learn(Learner<Model>& learner, std::span<const Example> batch) {
    require(!batch.empty(), "MetaReplay::learn", "there are no examples");
    learner.model.losses(batch);
    learner.write(batch);
    batch_ = (std::max)(batch_, std::ssize(batch));
    const bool full = std::ssize(support_) == inner_.steps;
    if (!full) support_.emplace_back(batch.begin(), batch.end());
    if (std::ssize(support_) < inner_.steps) return;
    const bool replays =
        replay_.drawn() > 0 && learner.memory.size() > 0 && (episode_ + 1) % episodes(batch_) == 0;
    if (!full && !replays) return;
    const auto support = std::exchange(support_, {});
    if (full)
      differentiate(learner, support, batch);
    else
      differentiate(learner, support,
                    learner.memory.examples(learner.memory.draw(replay_.drawn(), learner.random)));
    learner.step();
    ++episode_;
  }

  /// What the model answers behind m steps on batches of the memory. @throws what model and memory
  /// do
  Answers answer(Learner<Model>& learner, std::span<const Example> examples) {
    LocalAdaptation<Model> local(learner.model, inner_);
    Random draws = learner.random.split(0);  // so that answering moves nothing on
    for (Index i = 0; i < inner_.steps && learner.memory.size() > 0; ++i)
      local.step(learner.memory.examples(learner.memory.draw(inner_.neighbours, draws)));
    return local.adapted().answers(examples);
  }

  /// Leaves the first-order gradient of the query's mean loss behind a step on each support batch
  /// in the model's parameters. @throws what the model does
  void differentiate(Learner<Model>& learner, const std::vector<std::vector<Example>>& support,
                     std::span<const Example> query) {
    LocalAdaptation<Model> local(learner.model, inner_);
    for (const auto& batch : support) local.step(batch);
    local.differentiate(query);
    learner.adam.zero_grad();
    add_gradients(learner.adam.parameters(), local.parameters(), 1);
  }

 private:
  SparseReplayConfig replay_;
  LocalAdaptationConfig inner_;
  std::vector<std::vector<Example>> support_;
  Index episode_ = 0, batch_ = 1;
};

}  // namespace infty
