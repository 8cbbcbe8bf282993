// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <infty/lifelong/adapted_heads.hpp>
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

  /// What the adapted model answers to each example; where a `ClassHead` adapts alone, those of
  /// many questions side by side (`AdaptedHeads`). @throws what model and memory do
  template <class L>
  Answers answer(L& learner, std::span<const Example> examples) {
    LocalAdaptation local(learner.model, adaptation_);
    const Index k = adaptation_.neighbours;
    const auto nearest = random_ ? std::vector<std::vector<Index>>() : learner.nearest(examples, k);
    Answers out;
    if constexpr (HasClassHead<typename L::ModelType>)
      if (AdaptedHeads<typename L::ModelType>::side_by_side(local) && learner.memory.size() > 0 &&
          std::all_of(nearest.begin(), nearest.end(),
                      [&](const auto& of) { return of.size() == nearest.front().size(); }))
        return side_by_side(learner, local, examples, nearest);
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
  /// The same of a model whose head adapts alone, of many questions at a time.
  template <class L>
  Answers side_by_side(const L& learner, const LocalAdaptation<typename L::ModelType>& local,
                       std::span<const Example> questions,
                       const std::vector<std::vector<Index>>& nearest) const {
    const Index k = adaptation_.neighbours;
    const auto at_once = static_cast<std::size_t>(std::clamp<Index>((Index{1} << 16) / k, 1, 64));
    Answers out;
    for (std::size_t begin = 0; begin < questions.size(); begin += at_once) {
      const auto some = questions.subspan(begin, (std::min)(at_once, questions.size() - begin));
      std::vector<Example> read;
      std::map<Index, Index> number;  // of the examples of the memory, among these
      std::vector<std::vector<Index>> neighbours;
      for (std::size_t i = begin; i < begin + some.size(); ++i) {
        Random draws = learner.random.split(static_cast<std::uint64_t>(i));
        auto& of = neighbours.emplace_back(random_ ? learner.memory.draw(k, draws) : nearest[i]);
        for (Index& place : of) {
          const auto [at, fresh] = number.try_emplace(place, std::ssize(read));
          if (fresh) read.push_back(learner.memory.example(place));
          place = at->second;
        }
      }
      const AdaptedHeads<typename L::ModelType> heads(local, read);
      for (auto& answer : heads.answers(heads.adapt(neighbours), some))
        out.push_back(std::move(answer));
    }
    return out;
  }

  LocalAdaptationConfig adaptation_;
  bool random_;
};

}  // namespace infty
