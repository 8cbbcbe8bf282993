// SPDX-License-Identifier: MIT
#pragma once

#include <infty/lifelong/learner.hpp>

namespace infty {

/// Learns batch after batch and does nothing against forgetting: ENC-DEC of [de Masson d'Autume et
/// al. 2019], SEQ of [Holla et al. 2020]. The lower bound.
struct Sequential {
  /// A step on a batch. @throws as `Learner::train_on`
  template <class L>
  void learn(L& learner, std::span<const Example> batch) {
    learner.train_on(batch);
  }

  /// What the model answers. @throws as `Predictor::answers`
  template <class L>
  Answers answer(L& learner, std::span<const Example> examples) {
    return learner.model.answers(examples);
  }
};

}  // namespace infty
