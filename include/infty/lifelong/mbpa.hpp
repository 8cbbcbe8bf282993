// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <infty/lifelong/experience_replay.hpp>
#include <infty/lifelong/local_adaptation.hpp>

namespace infty {

/// Adapts a copy of the model to examples of the memory for every question by itself: MbPA
/// [Sprechmann et al. 2018] where nothing is replayed (a rate of 0), MbPA++ [de Masson d'Autume et
/// al. 2019] with sparse replay.
class Mbpa : public ExperienceReplay {
 public:
  /// @param random  whether K examples are drawn in the place of the K nearest: MbPA++ rand
  /// @throws infty::ValueError for a bad configuration
  Mbpa(SparseReplayConfig replay, LocalAdaptationConfig adaptation, bool random = false)
      : ExperienceReplay(std::move(replay)),
        adaptation_((adaptation.validate(), std::move(adaptation))),
        random_(random) {}

  /// What the adapted model answers to each example. @throws what model and memory do
  template <class L>
  Answers answer(L& learner, std::span<const Example> examples) {
    LocalAdaptation local(learner.model, adaptation_);
    const Index k = adaptation_.neighbours;
    const auto nearest = random_ ? std::vector<std::vector<Index>>() : learner.nearest(examples, k);
    Answers out;
    for (std::size_t i = 0; i < examples.size(); ++i) {
      // By the number of the question alone, so that answering moves nothing on.
      Random draws = learner.random.split(static_cast<std::uint64_t>(i));
      const auto& adapted = local.adapt(
          learner.memory.examples(random_ ? learner.memory.draw(k, draws) : nearest[i]));
      out.push_back(adapted.answers(examples.subspan(i, 1)).front());
    }
    return out;
  }

 private:
  LocalAdaptationConfig adaptation_;
  bool random_;
};

}  // namespace infty
