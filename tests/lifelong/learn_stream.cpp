// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/lifelong/a_gem.hpp>
#include <infty/lifelong/learn_stream.hpp>
#include <infty/lifelong/mbpa.hpp>
#include <infty/lifelong/meta_mbpa.hpp>
#include <infty/lifelong/meta_replay.hpp>
#include <infty/lifelong/multitask.hpp>
#include <infty/lifelong/neuromodulator.hpp>
#include <infty/lifelong/online_ewc.hpp>

#include "lifelong/predictor_case.hpp"
#include "support/catch.hpp"
#include "support/threads.hpp"

using infty::AccuracyMatrix;
using infty::Example;
using infty::Index;
using infty::LifelongTask;

namespace learn_stream_tests {

using Model = decltype(infty::tests::small_classifier<float>());
using Learner = infty::Learner<Model>;

std::vector<LifelongTask> tasks() {
  std::vector<LifelongTask> out;
  for (std::uint64_t t = 0; t < 3; ++t)
    out.push_back({"task " + std::to_string(t), infty::tests::small_examples(20, t),
                   infty::tests::small_examples(10, 50 + t)});
  return out;
}

template <class M = Model>
infty::Learner<M> learner(M model = infty::tests::small_classifier<float>()) {
  return {std::move(model), 4, {.adam = {.learning_rate = .01}, .seed = 2}};
}

/// All accuracies and, behind them, all parameters, of a method that learns the tasks.
template <class Method, class M>
std::vector<double> run(Method method, M begun) {
  auto model = learner(std::move(begun));
  const AccuracyMatrix matrix = infty::learn_stream(method, model, tasks(), 6);
  std::vector<double> out;
  for (Index t = 0; t < 3; ++t) out.insert(out.end(), matrix.row(t).begin(), matrix.row(t).end());
  for (const auto& [name, variable] : model.adam.parameters())
    for (const float x : variable.value().to_vector()) out.push_back(static_cast<double>(x));
  return out;
}

/// Whether a method gives the same bits with any number of threads. @param make  a fresh model
template <class Method, class Make>
bool same_with_threads(const Method& method, const Make& make) {
  return infty::tests::with_threads(1, [&] { return run(method, make()); }) ==
         infty::tests::with_threads(3, [&] { return run(method, make()); });
}
template <class Method>
bool same_with_threads(const Method& method) {
  return same_with_threads(method, [] { return infty::tests::small_classifier<float>(); });
}

/// The classifier behind gates, for ANML-ER.
auto gated() {
  const auto plain = infty::tests::small_classifier<float>();
  return infty::Predictor(
      plain.embedding, plain.body, plain.head,
      infty::Neuromodulator(plain.embedding, plain.body, 4, 4, infty::Random(8)));
}

/// All that a learner holds but the memory: parameters of model and key network, moments.
template <class L>
std::vector<float> bits_of(L& learner) {
  std::vector<float> out;
  const auto add = [&](const auto& tensor) {
    for (const float x : tensor.to_vector()) out.push_back(x);
  };
  for (auto* const model : {&learner.model, &learner.key_network})
    for (const auto& [name, variable] : infty::named_parameters<float>(*model))
      add(variable.value());
  learner.adam.visit([&](const std::string&, const auto& moment) {
    if constexpr (requires { moment.to_vector(); }) add(moment);
  });
  return out;
}

/// Has a method learn the tasks and then answer, twice: what has changed by that, in words. Places,
/// examples and distances of the memory tell its keys.
template <class Method, class M = Model>
std::string answers_leave(Method method, M begun = infty::tests::small_classifier<float>()) {
  auto model = learner(std::move(begun));
  infty::learn_stream(method, model, tasks(), 6);
  const auto questions = tasks()[0].test;
  const auto held = [&] {
    std::vector<std::vector<Index>> out = model.nearest(questions, model.memory.size() + 1);
    out.push_back({model.memory.size(), model.memory.offered(), model.memory.chosen()});
    for (Index i = 0; i < model.memory.size(); ++i) {
      out.push_back(model.memory.example(i).tokens);
      out.push_back(model.memory.example(i).labels);
    }
    return out;
  };
  const auto bits = bits_of(model);
  const auto memory = held();
  const infty::Random random = model.random;
  const auto answers = method.answer(model, questions);
  return bits_of(model) != bits                       ? "the model"
         : held() != memory                           ? "the memory"
         : !(model.random == random)                  ? "the random numbers"
         : method.answer(model, questions) != answers ? "the answers"
         : answers.size() != questions.size()         ? "their number"
                                                      : "";
}

/// Notes what it is given, and answers with the class of the question's own label, but for those of
/// which nothing was learned.
struct Noting {
  std::vector<std::vector<Example>> batches = {};
  void learn(Learner&, std::span<const Example> batch) {
    batches.emplace_back(batch.begin(), batch.end());
  }
  infty::Answers answer(Learner&, std::span<const Example> examples) const {
    infty::Answers out;
    for (std::size_t i = 0; i < examples.size(); ++i)
      out.push_back(i < batches.size() ? examples[i].labels : std::vector<Index>{-1});
    return out;
  }
};

struct NotingAll : Noting {
  static constexpr bool shuffled = true;
};

}  // namespace learn_stream_tests

TEST_CASE("learn_stream: every example comes once, in order, and all tasks are asked behind each") {
  using namespace learn_stream_tests;
  auto model = learner();
  Noting method;
  std::vector<Index> behind;
  const auto matrix =
      infty::learn_stream(method, model, tasks(), 6, 0, [&](Index t, const AccuracyMatrix& m) {
        behind.push_back(t);
        CHECK(m.rows() == t + 1);
      });
  CHECK(behind == std::vector<Index>{0, 1, 2});
  REQUIRE(method.batches.size() == 12);
  std::vector<Example> seen, all;
  for (const auto& batch : method.batches) seen.insert(seen.end(), batch.begin(), batch.end());
  for (const auto& task : tasks())
    all.insert(all.end(), task.training.begin(), task.training.end());
  CHECK(seen == all);
  CHECK(method.batches[3].size() == 2);                     // no batch is of two tasks
  CHECK(matrix.row(0) == std::vector<double>{.4, .4, .4});  // four batches of ten questions
  CHECK(matrix.row(2) == std::vector<double>{1, 1, 1});
  CHECK(matrix.ahead() == Approx((.4 + .8) / 2));  // nothing is known before the first
}

TEST_CASE("learn_stream: a shuffled stream has the same examples in another order, by its seed") {
  using namespace learn_stream_tests;
  const auto seen = [](Index seed) {
    auto model = learner();
    NotingAll method;
    infty::learn_stream(method, model, tasks(), 6, seed);
    std::vector<std::vector<Index>> out;
    for (const auto& batch : method.batches)
      for (const Example& e : batch) out.push_back(e.tokens);
    return out;
  };
  auto one = seen(1), other = seen(2);
  CHECK(one == seen(1));
  CHECK(one != other);
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  CHECK(one == other);
}

TEST_CASE("learn_stream: every method gives the same bits with any number of threads") {
  using namespace learn_stream_tests;
  const infty::SparseReplayConfig replay{.interval = 12, .rate = .5};
  const infty::LocalAdaptationConfig local{.neighbours = 4, .steps = 3};
  CHECK(same_with_threads(infty::Sequential()));
  CHECK(same_with_threads(infty::Multitask()));
  CHECK(same_with_threads(infty::ExperienceReplay(replay)));
  CHECK(same_with_threads(infty::AGem(5)));
  CHECK(same_with_threads(infty::OnlineEwc<Model>({.interval = 12, .sample = 4})));
  CHECK(same_with_threads(infty::Mbpa(replay, local)));
  CHECK(same_with_threads(infty::Mbpa(replay, local, true)));
  CHECK(same_with_threads(infty::Mbpa(replay, {.neighbours = 4, .steps = 3, .part = "head."})));
  CHECK(same_with_threads(infty::MetaMbpa<Model>(replay, local, 2)));
  CHECK(same_with_threads(infty::MetaReplay<Model>(replay, {.steps = 2, .part = "head."})));
  CHECK(same_with_threads(infty::MetaReplay<Model>(replay, {.steps = 2})));
  CHECK(same_with_threads(
      infty::MetaReplay<decltype(gated())>(replay, {.steps = 2, .without = "gate."}),
      [] { return gated(); }));
}

TEST_CASE(
    "learn_stream: answering leaves model, optimiser, memory and draws, whatever the method") {
  using namespace learn_stream_tests;
  const infty::SparseReplayConfig replay{.interval = 12, .rate = .5};
  const infty::LocalAdaptationConfig local{.neighbours = 4, .steps = 3};
  CHECK(answers_leave(infty::Sequential()) == "");
  CHECK(answers_leave(infty::Multitask()) == "");
  CHECK(answers_leave(infty::ExperienceReplay(replay)) == "");
  CHECK(answers_leave(infty::AGem(5)) == "");
  CHECK(answers_leave(infty::OnlineEwc<Model>({.interval = 12, .sample = 4})) == "");
  CHECK(answers_leave(infty::Mbpa({.interval = 12, .rate = 0}, local)) == "");
  CHECK(answers_leave(infty::Mbpa(replay, local)) == "");
  CHECK(answers_leave(infty::Mbpa(replay, local, true)) == "");
  CHECK(answers_leave(infty::Mbpa(replay, {.neighbours = 4, .steps = 3, .part = "head."})) == "");
  CHECK(answers_leave(infty::MetaMbpa<Model>(replay, local, 2)) == "");
  CHECK(answers_leave(infty::MetaReplay<Model>(replay, {.steps = 2, .part = "head."})) == "");
  CHECK(answers_leave(infty::MetaReplay<Model>(replay, {.steps = 2})) == "");
  CHECK(
      answers_leave(infty::MetaReplay<decltype(gated())>(replay, {.steps = 2, .without = "gate."}),
                    gated()) == "");
}

TEST_CASE("Learner: by the rule score it holds what is unsure, or what it is told") {
  using namespace learn_stream_tests;
  infty::Learner<Model> unsure(infty::tests::small_classifier<float>(), 4,
                               {.memory = {.rule = infty::WriteRule::score, .rate = .2}});
  infty::Learner<Model> told(infty::tests::small_classifier<float>(), 4,
                             {.memory = {.rule = infty::WriteRule::score, .rate = .2}});
  const auto examples = infty::tests::small_examples(10);
  told.score = [&](const Example& e) { return e == examples[3] || e == examples[8] ? 1. : 0.; };
  unsure.write(examples);
  told.write(examples);
  REQUIRE(unsure.memory.size() == 2);
  REQUIRE(told.memory.size() == 2);
  CHECK(told.memory.examples({0, 1}) == std::vector<Example>{examples[3], examples[8]});
  const auto losses = unsure.model.losses(examples);
  std::vector<double> held, others;
  for (std::size_t i = 0; i < examples.size(); ++i)
    (examples[i] == unsure.memory.example(0) || examples[i] == unsure.memory.example(1) ? held
                                                                                        : others)
        .push_back(losses[i]);
  CHECK(*std::min_element(held.begin(), held.end()) >=
        *std::max_element(others.begin(), others.end()));
}

TEST_CASE("Learner: a gradient whose square overflows stops, unless it is clipped") {
  using namespace learn_stream_tests;
  const infty::LearnerConfig any{}, clipped{.max_norm = 1};
  infty::Learner<Model> stops(infty::tests::small_classifier<float>(), 4, any),
      steps(infty::tests::small_classifier<float>(), 4, clipped);
  for (auto* const one : {&stops, &steps}) {
    one->differentiate(infty::tests::small_examples(4));
    one->model.head.map.bias.grad().fill(1e25F);
  }
  const auto before = stops.model.head.map.bias.value().to_vector();
  CHECK_THROWS_WITH(stops.step(), Catch::Contains("[Learner::step] the gradients' norm is ") &&
                                      Catch::Contains("whose square is no number in Adam"));
  CHECK(stops.model.head.map.bias.value().to_vector() == before);
  CHECK(stops.adam.steps() == 0);
  CHECK_NOTHROW(steps.step());
  CHECK(steps.adam.steps() == 1);
}

TEST_CASE("learn_stream: what cannot be is refused") {
  using namespace learn_stream_tests;
  auto model = learner();
  infty::Sequential method;
  CHECK_THROWS_AS(infty::learn_stream(method, model, {}, 6), infty::ValueError);
  CHECK_THROWS_AS(infty::learn_stream(method, model, tasks(), 0), infty::ValueError);
  auto untested = tasks();
  untested[1].test.clear();
  CHECK_THROWS_AS(infty::learn_stream(method, model, untested, 6), infty::ValueError);
  CHECK_THROWS_AS(infty::accuracy_of(method, model, {}), infty::ValueError);
}

TEST_CASE("AccuracyMatrix: mean, forgetting and what is known ahead, by hand") {
  AccuracyMatrix matrix(3);
  CHECK_THROWS_AS(matrix.mean(), infty::ValueError);
  CHECK_THROWS_AS(matrix.forgetting(), infty::ValueError);
  CHECK_THROWS_AS(matrix.ahead(), infty::ValueError);
  matrix.add({.9, .2, .1});
  CHECK(matrix.forgetting() == 0);
  CHECK(matrix.ahead() == 0);
  matrix.add({.5, .8, .3});
  matrix.add({.6, .4, .7});
  CHECK(matrix.mean() == Approx((.6 + .4 + .7) / 3));
  CHECK(matrix.forgetting() == Approx((.9 - .6 + .8 - .4) / 2));
  CHECK_THROWS_AS(matrix.ahead(), infty::ValueError);
  CHECK_THROWS_AS(matrix.begin({.1, .1}), infty::ShapeError);
  CHECK_THROWS_AS(matrix.begin({.1, .1, -1}), infty::ValueError);
  matrix.begin({.9, .1, .35});
  CHECK(matrix.ahead() == Approx((.2 - .1 + .3 - .35) / 2));
  CHECK_THROWS_AS(matrix.add({0, 0, 0}), infty::ShapeError);
  CHECK(matrix.rows() == 3);
  AccuracyMatrix other(2);
  CHECK_THROWS_AS(other.add({1}), infty::ShapeError);
  CHECK_THROWS_AS(other.add({1, 1.5}), infty::ValueError);
  CHECK(other.rows() == 0);
  CHECK_THROWS_AS(AccuracyMatrix(0), infty::ValueError);
}
