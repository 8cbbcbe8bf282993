// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <infty/lifelong/adapted_heads.hpp>
#include <infty/lifelong/learn_stream.hpp>
#include <infty/lifelong/mbpa.hpp>
#include <infty/lifelong/neuromodulator.hpp>

#include "lifelong/predictor_case.hpp"
#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Example;
using infty::Index;
using infty::LocalAdaptation;

namespace adapted_heads_tests {

template <class T, class B = infty::EigenBackend>
auto gated_classifier() {
  const auto plain = infty::tests::small_classifier<T, B>();
  return infty::Predictor(
      plain.embedding, plain.body, plain.head,
      infty::Neuromodulator(plain.embedding, plain.body, 4, 4, infty::Random(8)));
}

/// Neighbours of 9 questions among 20 examples, some of them of several.
std::vector<std::vector<Index>> neighbours_of_nine() {
  std::vector<std::vector<Index>> out;
  for (Index q = 0; q < 9; ++q) out.push_back({q, (q * 7 + 3) % 20, 19, (q * 11) % 20, 4});
  return out;
}

/// The largest difference between heads that are adapted side by side and one by one, and whether
/// they answer alike.
template <class Model>
double apart(const Model& model, const infty::LocalAdaptationConfig& config) {
  using T = typename Model::Scalar;
  const auto examples = infty::tests::small_examples(20),
             questions = infty::tests::small_examples(9, 5);
  const auto neighbours = neighbours_of_nine();
  LocalAdaptation local(model, config);
  const infty::AdaptedHeads<Model> side(local, examples);
  const auto heads = side.adapt(neighbours);
  const auto answers = side.answers(heads, questions);
  const std::vector<T> weight = heads.weight.to_vector(), bias = heads.bias.to_vector();
  double worst = 0;
  for (std::size_t q = 0; q < questions.size(); ++q) {
    std::vector<Example> own;
    for (const Index i : neighbours[q]) own.push_back(examples[static_cast<std::size_t>(i)]);
    const Model& adapted = local.adapt(own);
    if (adapted.answers(std::span(questions).subspan(q, 1)).front() != answers[q]) return 1e9;
    const auto w = adapted.head.map.weight.value().to_vector(),
               b = adapted.head.map.bias.value().to_vector();
    for (std::size_t i = 0; i < w.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(w[i] - weight[q * w.size() + i])));
    for (std::size_t i = 0; i < b.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(b[i] - bias[q * b.size() + i])));
  }
  return worst;
}

}  // namespace adapted_heads_tests

TEST_CASE("LocalAdaptation: a model whose matrices are stored in bfloat16 keeps them so") {
  auto model = infty::tests::small_classifier<float>();
  infty::store_in_bfloat16(model);
  LocalAdaptation local(model, {.neighbours = 4, .steps = 2, .learning_rate = .1});
  const auto& adapted = local.adapt(infty::tests::small_examples(4));
  CHECK_FALSE(adapted.head.map.weight.stored_in_bfloat16());
  local.reset();
  infty::for_each_parameter(model, [](const std::string&, const infty::Variable<float>& p) {
    CHECK((p.stored_in_bfloat16() != nullptr) == (p.shape().rank() == 2));
  });
}

TEMPLATE_LIST_TEST_CASE("AdaptedHeads: those of many questions are each as it adapts by itself", "",
                        infty::tests::Types) {
  using namespace adapted_heads_tests;
  using T = typename TestType::T;
  using B = typename TestType::B;
  const double close = sizeof(T) == 8 ? 1e-12 : 1e-4;
  const auto model = infty::tests::small_classifier<T, B>();
  for (const std::string part : {"head.", "head.weight", "head.bias"})
    for (const Index steps : {0, 1, 5})
      CHECK(apart(model, {.steps = steps, .learning_rate = .5, .lambda = .1, .part = part}) <
            close);
  CHECK(apart(gated_classifier<T, B>(), {.steps = 4, .learning_rate = .5, .part = "head."}) <
        close);
}

TEST_CASE("AdaptedHeads: MbPA answers by them where the head adapts alone, as one by one") {
  using namespace adapted_heads_tests;
  const infty::LocalAdaptationConfig config{
      .neighbours = 4, .steps = 5, .learning_rate = .5, .part = "head."};
  for (const bool random : {false, true}) {
    infty::Learner learner(infty::tests::small_classifier<double>(), 4,
                           {.adam = {.learning_rate = .01}, .seed = 2});
    infty::Mbpa method({.rate = 0}, config, random);
    for (std::uint64_t i = 0; i < 10; ++i)
      method.learn(learner, infty::tests::small_examples(6, i));
    const auto questions = infty::tests::small_examples(150, 77);  // more than at once
    const auto answers = method.answer(learner, questions);
    REQUIRE(answers.size() == questions.size());
    LocalAdaptation local(learner.model, config);
    const auto nearest = learner.nearest(questions, 4);
    Index changed = 0;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      infty::Random draws = learner.random.split(i);
      const auto question = std::span(questions).subspan(i, 1);
      const auto& adapted =
          local.adapt(learner.memory.examples(random ? learner.memory.draw(4, draws) : nearest[i]));
      CHECK(answers[i] == adapted.answers(question).front());
      changed += answers[i] != learner.model.answers(question).front() ? 1 : 0;
    }
    CHECK(changed > 0);
  }
}

TEST_CASE("AdaptedHeads: heads that went astray have no answers, nor have those one by one") {
  infty::Learner learner(infty::tests::small_classifier<double>(), 4, {});
  const auto examples = infty::tests::small_examples(20);
  learner.write(examples);
  const infty::LocalAdaptationConfig config{
      .neighbours = 4, .steps = 60, .learning_rate = 1e20, .lambda = 1, .part = "head."};
  infty::Mbpa method({.rate = 0}, config);
  CHECK_THROWS_AS(method.answer(learner, examples), infty::NonFiniteError);
  LocalAdaptation local(learner.model, config);
  const auto& adapted = local.adapt(examples);
  CHECK_THROWS_AS(adapted.answers(examples), infty::NonFiniteError);
}

TEST_CASE("AdaptedHeads: in double they differ by the order of sums alone") {
  using namespace adapted_heads_tests;
  const infty::LocalAdaptationConfig config{.steps = 5, .learning_rate = .5, .part = "head."};
  CHECK(apart(infty::tests::small_classifier<double>(), config) < 1e-12);
  CHECK(apart(gated_classifier<double>(), config) < 1e-12);
}

TEST_CASE("AdaptedHeads: what cannot go side by side is refused") {
  using namespace adapted_heads_tests;
  auto model = infty::tests::small_classifier<double>();
  using Heads = infty::AdaptedHeads<decltype(model)>;
  const auto examples = infty::tests::small_examples(20);
  const LocalAdaptation all(model, {});
  CHECK_FALSE(Heads::side_by_side(all));
  CHECK_THROWS_AS(Heads(all, examples), infty::ValueError);
  const LocalAdaptation head(model, {.part = "head."});
  const Heads heads(head, examples);
  const std::vector<std::vector<Index>> uneven{{1, 2}, {3}}, none{{}, {}};
  CHECK_THROWS_AS(heads.adapt(uneven), infty::ShapeError);
  CHECK_THROWS_AS(heads.adapt(none), infty::ShapeError);
  CHECK(heads.adapt({}).weight.size() == 0);
  for (const Index place : {Index{-1}, Index{20}, Index{1} << 60}) {
    const std::vector<std::vector<Index>> nowhere{{0, 19}, {place, 1}};
    CHECK_THROWS_AS(heads.adapt(nowhere), infty::ShapeError);
  }
  for (const std::vector<Index>& labels : {std::vector<Index>{}, {1, 2}}) {
    auto odd = examples;
    odd[1].labels = labels;
    CHECK_THROWS_AS(Heads(head, odd), infty::ShapeError);
  }
  auto ignored = examples;
  ignored[1].labels = {infty::ignore_index};
  CHECK_THROWS_AS(Heads(head, ignored).adapt(std::vector<std::vector<Index>>{{1}}),
                  infty::ValueError);
}
