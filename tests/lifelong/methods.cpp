// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <infty/lifelong/a_gem.hpp>
#include <infty/lifelong/mbpa.hpp>
#include <infty/lifelong/meta_mbpa.hpp>
#include <infty/lifelong/meta_replay.hpp>
#include <infty/lifelong/multitask.hpp>
#include <infty/lifelong/online_ewc.hpp>

#include "lifelong/by_hand.hpp"
#include "lifelong/predictor_case.hpp"
#include "support/catch.hpp"

using infty::Example;
using infty::Index;
using infty::Learner;
using infty::LocalAdaptation;
using infty::LocalAdaptationConfig;
using infty::Random;

namespace methods_tests {

/// A learner whose embedding is frozen.
Learner<infty::tests::TinyModel> frozen_learner() {
  auto model = infty::tests::tiny_model();
  model.embedding.table.weight.set_requires_grad(false);
  return {model, infty::tests::tiny_width, {.adam = {.learning_rate = .01}, .seed = 5}};
}

/// Whether a method that learns and answers leaves the frozen embedding bit for bit, and the head
/// not.
template <class Method>
bool keeps_frozen(Method method) {
  using namespace infty::tests;
  auto learner = frozen_learner();
  const Numbers start = numbers_of(learner.model);
  for (Index i = 0; i < batches; ++i) method.learn(learner, batch(i));
  method.answer(learner, tiny_examples(3, 77));
  const Numbers now = numbers_of(learner.model);
  const auto head = static_cast<std::ptrdiff_t>(ByHand::map);
  return std::equal(start.begin(), start.begin() + head, now.begin()) &&
         !std::equal(start.begin() + head, start.end(), now.begin() + head);
}

}  // namespace methods_tests

TEST_CASE("Methods: what is frozen stays bit for bit, whatever learns and adapts") {
  using namespace infty::tests;
  const infty::SparseReplayConfig replay{.interval = 8, .rate = .5};
  const LocalAdaptationConfig local{.neighbours = 3, .steps = 2, .learning_rate = .3, .lambda = .4};
  CHECK(methods_tests::keeps_frozen(infty::Sequential()));
  CHECK(methods_tests::keeps_frozen(infty::ExperienceReplay(replay)));
  CHECK(methods_tests::keeps_frozen(infty::AGem(3)));
  CHECK(methods_tests::keeps_frozen(
      infty::OnlineEwc<TinyModel>({.lambda = 30, .interval = 8, .sample = 4})));
  CHECK(methods_tests::keeps_frozen(infty::Mbpa(replay, local)));
  CHECK(methods_tests::keeps_frozen(infty::MetaMbpa<TinyModel>(replay, local)));
  CHECK(methods_tests::keeps_frozen(infty::MetaReplay<TinyModel>(replay, local)));

  auto learner = methods_tests::frozen_learner();
  const Numbers start = numbers_of(learner.model);
  LocalAdaptation adaptation(learner.model, local);
  const auto examples = tiny_examples(5, 9);
  adaptation.step(examples);
  ByHand hand{start};
  hand.descend(examples, start, .3, .4, ByHand::map);
  auto adapted = adaptation.adapted();
  CHECK(farthest(numbers_of(adapted), hand.w) < 1e-9);
  CHECK_THROWS_AS(LocalAdaptation(learner.model, {.part = "embedding."}), infty::ValueError);

  // The reference has no part of the frozen ones, whatever it says of them.
  learner.differentiate(examples);
  auto reference = infty::copy_gradients(learner.adam.parameters());
  for (auto& tensor : reference) tensor.fill(-1);
  const Numbers g = ByHand{start}.gradient(examples);
  double harm = 0;
  for (std::size_t i = ByHand::map; i < g.size(); ++i) harm -= g[i];
  const auto live = static_cast<double>(g.size() - ByHand::map);
  CHECK(infty::project_gradients(learner.adam.parameters(), reference) == (harm < 0));
  CHECK_FALSE(learner.adam.parameters().front().variable.has_grad());
  const Numbers left = numbers_of(learner.model, true);
  for (std::size_t i = ByHand::map; i < g.size(); ++i)
    CHECK(std::abs(left[i] - (g[i] + (harm < 0 ? harm / live : 0))) < 1e-12);
}

TEST_CASE("SparseReplayConfig: so many are drawn as a decimal rate says") {
  CHECK(infty::SparseReplayConfig{.interval = 100, .rate = .29}.drawn() == 29);
  CHECK(infty::SparseReplayConfig{.interval = 1000, .rate = .019}.drawn() == 19);
  CHECK(infty::SparseReplayConfig{.interval = 100, .rate = .299}.drawn() == 29);
  CHECK(infty::SparseReplayConfig{.interval = Index{1} << 53, .rate = 1}.drawn() == Index{1} << 53);
  for (const Index n : {1, 7, 1000})
    for (Index k = 0; k <= n; ++k)
      CHECK(infty::SparseReplayConfig{.interval = n,
                                      .rate = static_cast<double>(k) / static_cast<double>(n)}
                .drawn() == k);
}

TEST_CASE("add_gradients: of other parameters are refused") {
  const auto named = [](infty::Index n) {
    return infty::NamedParameter<float>{
        "w", infty::Variable<float>(infty::Tensor<float>::zeros({n}), true)};
  };
  const std::vector two{named(2)}, three{named(3)};
  CHECK_THROWS_AS(infty::add_gradients(two, three, 1), infty::ShapeError);
  CHECK_THROWS_AS(infty::add_gradients(two, {}, 1), infty::ShapeError);
}

TEST_CASE("project_gradients: what is left does the reference no harm, by hand") {
  using namespace infty::tests;
  int projected = 0;
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    auto learner = tiny_learner();
    const ByHand hand{numbers_of(learner.model)};
    const auto one = tiny_examples(2, draw), other = tiny_examples(2, 50 + draw);
    learner.differentiate(other);
    const auto reference = infty::copy_gradients(learner.adam.parameters());
    learner.differentiate(one);
    Numbers g = hand.gradient(one);
    const Numbers r = hand.gradient(other);
    CHECK(farthest(numbers_of(learner.model, true), g) < 1e-12);
    const bool harmful = dot(g, r) < 0;
    CHECK(infty::project_gradients(learner.adam.parameters(), reference) == harmful);
    projected += harmful ? 1 : 0;
    const double factor = harmful ? dot(g, r) / dot(r, r) : 0;
    for (std::size_t i = 0; i < g.size(); ++i) g[i] -= factor * r[i];
    const Numbers left = numbers_of(learner.model, true);
    CHECK(farthest(left, g) < 1e-12);
    CHECK(dot(left, r) > -1e-12);
  }
  CHECK(projected > 3);
  CHECK(projected < 17);
  auto learner = tiny_learner();
  learner.differentiate(tiny_examples(2, 0));
  auto none = infty::copy_gradients(learner.adam.parameters());
  for (auto& tensor : none) tensor.fill(0);
  CHECK_FALSE(infty::project_gradients(learner.adam.parameters(), none));
  none.pop_back();
  CHECK_THROWS_AS(infty::project_gradients(learner.adam.parameters(), none), infty::ShapeError);
}

TEST_CASE("project_gradients: a reference that is nearly known is held against, too") {
  using V = infty::Variable<float>;
  for (const float length : {1e-30F, 1e-39F, 1e-43F}) {
    const std::vector<infty::NamedParameter<float, infty::EigenBackend>> parameters{
        {"w", V(infty::Tensor<float>::zeros({2}), true)}};
    auto& gradient = parameters[0].variable.grad();
    gradient.copy_from(infty::Tensor<float>::from({2}, std::vector<float>{-3, 1}));
    const std::vector reference{infty::Tensor<float>::from({2}, std::vector<float>{length, 0})};
    CHECK(infty::project_gradients(parameters, reference));
    CHECK(std::abs(gradient.to_vector()[0]) < 1e-6F);
    CHECK(gradient.to_vector()[1] == 1);
  }
}

TEST_CASE("Sequential, ExperienceReplay, AGem and OnlineEwc: whole runs equal those by hand") {
  using namespace infty::tests;
  const infty::SparseReplayConfig replay{.interval = 10, .rate = .3};
  const infty::OnlineEwcConfig ewc{.lambda = 30, .gamma = .6, .interval = 10, .sample = 6};
  auto sequential = tiny_learner(), replayed = tiny_learner(), held = tiny_learner(),
       anchored = tiny_learner();
  infty::Sequential plain;
  infty::ExperienceReplay with_replay(replay);
  infty::AGem a_gem(3, 2);
  infty::OnlineEwc<TinyModel> with_ewc(ewc);
  const Numbers start = numbers_of(sequential.model);
  ByHand of_plain{start}, of_replay{start}, of_gem{start}, of_ewc{start};
  AdamByHand plain_adam, replay_adam, gem_adam, ewc_adam;
  Mirror replay_memory, gem_memory;
  Numbers importance(start.size(), 0), anchor = start;
  std::vector<Example> seen;
  for (Index i = 0; i < batches; ++i) {
    const auto examples = batch(i);
    plain.learn(sequential, examples);
    plain_adam.step(of_plain.w, of_plain.gradient(examples));

    with_replay.learn(replayed, examples);
    replay_adam.step(of_replay.w, of_replay.gradient(examples));
    replay_memory.learner.write(examples);
    if ((i + 1) * batch_size / 10 > i * batch_size / 10)
      replay_adam.step(of_replay.w, of_replay.gradient(replay_memory.draw(3)));

    a_gem.learn(held, examples);
    Numbers g = of_gem.gradient(examples);
    if (i % 2 == 1) {
      const Numbers r = of_gem.gradient(gem_memory.draw(3));
      const double harm = dot(g, r);
      for (std::size_t j = 0; harm < 0 && j < g.size(); ++j) g[j] -= harm / dot(r, r) * r[j];
    }
    gem_adam.step(of_gem.w, g);
    gem_memory.learner.write(examples);

    with_ewc.learn(anchored, examples);
    g = of_ewc.gradient(examples);
    for (std::size_t j = 0; j < g.size(); ++j)
      g[j] += ewc.lambda * importance[j] * (of_ewc.w[j] - anchor[j]);
    ewc_adam.step(of_ewc.w, g);
    seen.insert(seen.end(), examples.begin(), examples.end());
    if ((i + 1) * batch_size / 10 > i * batch_size / 10) {
      for (double& f : importance) f *= ewc.gamma;
      for (std::size_t n = seen.size() - 6; n < seen.size(); ++n) {
        const Numbers one = of_ewc.gradient({seen[n]});
        for (std::size_t j = 0; j < one.size(); ++j) importance[j] += one[j] * one[j] / 6;
      }
      anchor = of_ewc.w;
    }
  }
  CHECK(farthest(numbers_of(sequential.model), of_plain.w) < 1e-9);
  CHECK(farthest(numbers_of(replayed.model), of_replay.w) < 1e-9);
  CHECK(farthest(numbers_of(held.model), of_gem.w) < 1e-9);
  CHECK(farthest(numbers_of(anchored.model), of_ewc.w) < 1e-9);
  Numbers estimated;
  for (const auto& tensor : with_ewc.importance())
    for (const double f : tensor.to_vector()) estimated.push_back(f);
  CHECK(farthest(estimated, importance) < 1e-9);
  for (const ByHand* other : {&of_replay, &of_gem, &of_ewc})
    CHECK(farthest(other->w, of_plain.w) > 1e-4);
}

TEST_CASE("LocalAdaptation: steps and their regulariser by hand; the model stays bit for bit") {
  using namespace infty::tests;
  auto model = tiny_model();
  const Numbers start = numbers_of(model);
  const auto examples = tiny_examples(5, 9), others = tiny_examples(3, 10);
  for (const bool head : {false, true}) {
    const LocalAdaptationConfig config{
        .steps = 7, .learning_rate = .3, .lambda = .4, .part = head ? "head." : ""};
    LocalAdaptation local(model, config);
    for (const auto& context : {others, examples}) {  // the second begins again
      const auto& adapted = local.adapt(context);
      ByHand hand{start};
      for (int i = 0; i < 7; ++i) hand.descend(context, start, .3, .4, head ? ByHand::map : 0);
      auto handles = adapted;
      CHECK(farthest(numbers_of(handles), hand.w) < 1e-9);
      CHECK(farthest(numbers_of(handles), start) > 1e-2);
      CHECK(numbers_of(model) == start);
    }
    auto handles = local.adapt({});
    CHECK(numbers_of(handles) == start);
  }
  CHECK_THROWS_AS(LocalAdaptation(model, {.part = "tail."}), infty::ValueError);
  CHECK_THROWS_AS(LocalAdaptation(model, {.neighbours = 0}), infty::ValueError);
  CHECK_THROWS_AS(LocalAdaptation(model, {.steps = -1}), infty::ValueError);
  CHECK_THROWS_AS(LocalAdaptation(model, {.lambda = -1}), infty::ValueError);
  CHECK_THROWS_AS(LocalAdaptation(model, {.lambda = 1e39}), infty::ValueError);
  CHECK_THROWS_AS(LocalAdaptation(model, {.learning_rate = -1}), infty::ValueError);
  CHECK_THROWS_AS(LocalAdaptation(model, {.learning_rate = 1e39}), infty::ValueError);
}

TEST_CASE(
    "LocalAdaptation: where the head adapts alone, reading once is the same as step by step") {
  auto model = infty::tests::small_classifier<double>();
  const auto examples = infty::tests::small_examples(7);
  for (const std::string part : {"head.", "weight"}) {  // of the second, the encoder has some
    const LocalAdaptationConfig config{.steps = 4, .learning_rate = .3, .lambda = .4, .part = part};
    LocalAdaptation once(model, config), steps(model, config);
    once.adapt(examples);
    for (int i = 0; i < 4; ++i) steps.step(examples);
    auto one = once.adapted(), other = steps.adapted();
    using infty::tests::numbers_of, infty::tests::farthest;
    CHECK(farthest(numbers_of(one), numbers_of(other)) < 1e-12);
    CHECK(farthest(numbers_of(one), numbers_of(model)) > 1e-3);
  }
  auto learned = model.loss(examples);
  const auto reading = model.read(examples);
  CHECK(model.loss(reading, examples).value().item() == learned.value().item());
  CHECK_THROWS_AS(model.loss(reading, {}), infty::ValueError);
}

TEST_CASE("Mbpa: each question is answered by a model adapted to its neighbours, by hand") {
  using namespace infty::tests;
  const LocalAdaptationConfig config{
      .neighbours = 3, .steps = 4, .learning_rate = 2, .lambda = .01};
  for (const bool random : {false, true}) {
    auto learner = tiny_learner();
    infty::Mbpa method({.rate = 0}, config, random);
    const Numbers keys = numbers_of(learner.key_network);
    std::vector<Example> all;
    for (Index i = 0; i < batches; ++i) {
      method.learn(learner, batch(i));
      for (const Example& e : batch(i)) all.push_back(e);
    }
    CHECK(numbers_of(learner.key_network) == keys);
    const Numbers start = numbers_of(learner.model);
    const Random before = learner.random;
    const auto questions = tiny_examples(30, 77);
    const auto answers = method.answer(learner, questions);
    CHECK(numbers_of(learner.model) == start);
    CHECK(learner.random == before);
    CHECK(answers == method.answer(learner, questions));
    Index changed = 0;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      Random draws = learner.random.split(i);
      const auto context = random ? learner.memory.examples(learner.memory.draw(3, draws))
                                  : nearest(keys, all, questions[i], 3);
      ByHand hand{start};
      changed -= hand.answer(questions[i]);
      for (int step = 0; step < 4; ++step) hand.descend(context, start, 2, .01);
      CHECK(answers[i] == std::vector<Index>{hand.answer(questions[i])});
      changed += hand.answer(questions[i]);
    }
    CHECK(changed != 0);
  }
}

TEST_CASE("Methods: settings out of their range are refused") {
  using namespace infty::tests;
  CHECK_THROWS_AS(infty::ExperienceReplay({.interval = 0}), infty::ValueError);
  CHECK_THROWS_AS(infty::ExperienceReplay({.interval = (Index{1} << 53) + 1}), infty::ValueError);
  CHECK_THROWS_AS(infty::ExperienceReplay({.rate = 1.5}), infty::ValueError);
  CHECK_THROWS_AS(infty::AGem(0), infty::ValueError);
  CHECK_THROWS_AS(infty::AGem(1, 0), infty::ValueError);
  CHECK_THROWS_AS(infty::Mbpa({.rate = -1}, {}), infty::ValueError);
  CHECK_THROWS_AS(infty::MetaMbpa<infty::tests::TinyModel>({}, {}, 0), infty::ValueError);
  for (const infty::OnlineEwcConfig& wrong : {infty::OnlineEwcConfig{.lambda = -1},
                                              {.lambda = 1e39},
                                              {.gamma = 2},
                                              {.interval = 0},
                                              {.sample = 0},
                                              {.interval = (Index{1} << 53) + 1}})
    CHECK_THROWS_AS(infty::OnlineEwc<infty::tests::TinyModel>(wrong), infty::ValueError);
  infty::OnlineEwc<infty::tests::TinyModel> ewc({});
  auto learner = tiny_learner();
  CHECK_THROWS_AS(ewc.estimate(learner, {}), infty::ValueError);
  ewc.learn(learner, batch(0));
  ewc.estimate(learner, batch(0));
  auto smaller = tiny_model();
  smaller.head = infty::ClassHead<double>(tiny_width, tiny_classes - 1, Random(2));
  Learner<TinyModel> other(smaller, tiny_width, {});
  const std::vector<Example> one{{{0}, {0}}};
  CHECK_THROWS_AS(ewc.learn(other, one), infty::ShapeError);
  CHECK_THROWS_AS(ewc.estimate(other, one), infty::ShapeError);
  CHECK_THROWS_AS((Learner<TinyModel>(tiny_model(), 3, {.seed = -1})), infty::ValueError);
  CHECK_THROWS_AS((Learner<TinyModel>(tiny_model(), 3, {.max_norm = 0})), infty::ValueError);
}
