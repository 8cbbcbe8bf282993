// SPDX-License-Identifier: MIT
#pragma once

#include <infty/lifelong/gradients.hpp>
#include <infty/lifelong/sequential.hpp>

namespace infty {

/// Takes no step that makes the loss of random examples of the memory worse, as far as gradients
/// tell: A-GEM [Chaudhry et al. 2019], which draws from all of the past where tasks have no names
/// [de Masson d'Autume et al. 2019].
class AGem : public Sequential {
 public:
  /// @param sample  examples that a step is held against  @param every  batches from one such step
  /// to the next; others are plain ones [Holla et al. 2020]
  /// @throws infty::ValueError unless both are at least 1
  explicit AGem(Index sample, Index every = 1) : sample_(sample), every_(every) {
    require_at_least("AGem", "sample", sample, 1);
    require_at_least("AGem", "every", every, 1);
  }

  /// A step on a batch, which is then offered to the memory.
  /// @throws as `Learner::train_on` and `Learner::write`
  template <class L>
  void learn(L& learner, std::span<const Example> batch) {
    const bool held = ++batches_ % every_ == 0 && learner.memory.size() > 0;
    std::vector<Tensor<typename L::T, typename L::B>> reference;
    if (held) {
      learner.differentiate(learner.memory.examples(learner.memory.draw(sample_, learner.random)));
      reference = copy_gradients(learner.adam.parameters());
    }
    learner.differentiate(batch);
    if (held) project_gradients(learner.adam.parameters(), reference);
    learner.step();
    learner.write(batch);
  }

 private:
  Index sample_, every_, batches_ = 0;
};

}  // namespace infty
