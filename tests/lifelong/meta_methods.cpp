// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <vector>

#include <infty/lifelong/meta_mbpa.hpp>
#include <infty/lifelong/meta_replay.hpp>

#include "lifelong/by_hand.hpp"
#include "support/catch.hpp"

using infty::Example;
using infty::Index;
using infty::LocalAdaptationConfig;
using infty::Random;

TEST_CASE("MetaMbpa: the first-order gradient of the meta-loss by hand, and a whole run") {
  using namespace infty::tests;
  const LocalAdaptationConfig config{
      .neighbours = 3, .steps = 5, .learning_rate = .5, .lambda = .1};
  const infty::SparseReplayConfig replay{.interval = 10, .rate = .3};
  for (const std::size_t together : {std::size_t{1}, std::size_t{3}}) {
    auto learner = tiny_learner();
    infty::MetaMbpa<TinyModel> method(replay, config, static_cast<Index>(together));
    const Numbers keys = numbers_of(learner.key_network);
    ByHand hand{numbers_of(learner.model)};
    AdamByHand adam;
    Mirror mirror;
    std::vector<Example> held;
    const auto meta_step = [&](const std::vector<Example>& examples) {
      Numbers g(hand.w.size(), 0);
      for (std::size_t begin = 0; begin < examples.size(); begin += together) {
        const std::size_t end = std::min(begin + together, examples.size());
        const std::vector<Example> group(examples.begin() + static_cast<Index>(begin),
                                         examples.begin() + static_cast<Index>(end));
        std::vector<Example> context;
        for (const Example& e : group)
          for (const Example& near : nearest(keys, held, e, 3)) context.push_back(near);
        ByHand adapted = hand;
        if (!context.empty()) adapted.descend(context, hand.w, .5, .1);
        const Numbers own = adapted.gradient(group);
        for (std::size_t j = 0; j < g.size(); ++j)
          g[j] += own[j] * static_cast<double>(group.size()) / static_cast<double>(examples.size());
      }
      return g;
    };
    for (Index i = 0; i < batches; ++i) {
      const auto examples = batch(i);
      method.differentiate(learner, examples);
      CHECK(farthest(numbers_of(learner.model, true), meta_step(examples)) < 1e-9);
      method.learn(learner, examples);
      adam.step(hand.w, meta_step(examples));
      for (const Example& e : examples) held.push_back(e);
      mirror.learner.write(examples);
      if ((i + 1) * batch_size / 10 > i * batch_size / 10)
        adam.step(hand.w, meta_step(mirror.draw(3)));
      CHECK(farthest(numbers_of(learner.model), hand.w) < 1e-9);
    }
    const Numbers start = numbers_of(learner.model);
    const auto questions = tiny_examples(30, 77);
    const auto answers = method.answer(learner, questions);
    CHECK(numbers_of(learner.model) == start);
    Random draws = learner.random.split(0);
    ByHand adapted = hand;
    for (int i = 0; i < 5; ++i)
      adapted.descend(learner.memory.examples(learner.memory.draw(3, draws)), hand.w, .5, .1);
    for (std::size_t i = 0; i < questions.size(); ++i)
      CHECK(answers[i] == std::vector<Index>{adapted.answer(questions[i])});
  }
}

TEST_CASE("MetaMbpa: no examples are no step") {
  using namespace infty::tests;
  auto learner = tiny_learner();
  infty::MetaMbpa<TinyModel> method({.interval = 10, .rate = .3}, {.neighbours = 3, .steps = 5});
  method.learn(learner, batch(0));  // behind which Adam has a momentum
  const Numbers before = numbers_of(learner.model);
  CHECK_THROWS_AS(method.learn(learner, {}), infty::ValueError);
  CHECK_THROWS_AS(method.differentiate(learner, {}), infty::ValueError);
  CHECK(numbers_of(learner.model) == before);
  CHECK(learner.memory.offered() == batch_size);
}

TEST_CASE("MetaReplay: episodes, their replay, and first-order gradients by hand") {
  using namespace infty::tests;
  CHECK(infty::MetaReplay<TinyModel>({.interval = 9600}, {.steps = 5}).episodes(16) == 101);
  CHECK(infty::MetaReplay<TinyModel>({.interval = 1600}, {.steps = 5}).episodes(4) == 67);
  CHECK(infty::MetaReplay<TinyModel>({.interval = Index{1} << 53}, {.steps = Index{1} << 53})
            .episodes(1) == 1);
  for (const Index wrong : {Index{0}, (Index{1} << 53) + 1})
    CHECK_THROWS_AS(infty::MetaReplay<TinyModel>({}, {.steps = wrong}), infty::ValueError);
  CHECK_THROWS_AS(infty::MetaReplay<TinyModel>({}, {.steps = 5}).episodes(0), infty::ValueError);
  for (const bool head : {true, false}) {
    const LocalAdaptationConfig inner{
        .neighbours = 4, .steps = 2, .learning_rate = .3, .lambda = 0, .part = head ? "head." : ""};
    auto learner = tiny_learner();
    // ⌈(16 / 4 + 1) / 3⌉ = 2: every second episode replays, behind two batches of support.
    infty::MetaReplay<TinyModel> method({.interval = 16, .rate = .2}, inner);
    REQUIRE(method.episodes(batch_size) == 2);
    ByHand hand{numbers_of(learner.model)};
    AdamByHand adam;
    Mirror mirror;
    // The last batch of a task is smaller: R_F is that of the others.
    const auto batch = [](Index i) {
      auto examples = infty::tests::batch(i);
      if (i == 4) examples.resize(1);
      return examples;
    };
    const auto episode = [&](Index first, const std::vector<Example>& query) {
      ByHand copy = hand;
      for (Index i = first; i < first + 2; ++i)
        copy.descend(batch(i), hand.w, .3, 0, head ? ByHand::map : 0);
      adam.step(hand.w, copy.gradient(query));
    };
    for (Index i = 0; i < 10; ++i) {
      method.learn(learner, batch(i));
      mirror.learner.write(batch(i));
      if (i % 5 == 2) episode(i - 2, batch(i));
      if (i % 5 == 4) episode(i - 1, mirror.draw(3));
      CHECK(farthest(numbers_of(learner.model), hand.w) < 1e-9);
    }
    const auto questions = tiny_examples(30, 77);
    const auto answers = method.answer(learner, questions);
    Random draws = learner.random.split(0);
    ByHand adapted = hand;
    for (int i = 0; i < 2; ++i)
      adapted.descend(learner.memory.examples(learner.memory.draw(4, draws)), hand.w, .3, 0,
                      head ? ByHand::map : 0);
    for (std::size_t i = 0; i < questions.size(); ++i)
      CHECK(answers[i] == std::vector<Index>{adapted.answer(questions[i])});
  }
}

TEST_CASE("MetaReplay: a batch that is refused is kept nowhere, and the next one is learned") {
  using namespace infty::tests;
  const infty::SparseReplayConfig replay{.interval = 16, .rate = .2};
  const LocalAdaptationConfig inner{
      .neighbours = 4, .steps = 2, .learning_rate = .3, .lambda = 0, .part = "head."};
  auto learner = tiny_learner(), untroubled = tiny_learner();
  infty::MetaReplay<TinyModel> method(replay, inner), other(replay, inner);
  for (Index i = 0; i < 10; ++i) {
    auto wrong = batch(i);
    wrong.back().labels = {99};
    CHECK_THROWS_AS(method.learn(learner, wrong), infty::ValueError);
    wrong.back().labels = {};
    CHECK_THROWS_AS(method.learn(learner, wrong), infty::ShapeError);
    CHECK_THROWS_AS(method.learn(learner, {}), infty::ValueError);
    method.learn(learner, batch(i));
    other.learn(untroubled, batch(i));
    CHECK(learner.memory.offered() == untroubled.memory.offered());
    CHECK(numbers_of(learner.model) == numbers_of(untroubled.model));
  }
}
