// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>
#include <vector>

#include <infty/autograd/clone.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/testing/gradient_check.hpp>

#include "lifelong/predictor_case.hpp"
#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Example;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

namespace predictor {

template <class T, class B, class Predictor>
double worst_gradient(Predictor& model, const std::vector<Example>& examples) {
  return static_cast<double>(infty::gradient_check<T, B>([&] { return model.loss(examples); },
                                                         infty::named_parameters<T, B>(model))
                                 .largest);
}

std::vector<Example> with_spans(std::vector<Example> examples) {
  for (Example& e : examples) e.labels = {1, std::ssize(e.tokens) - 1};
  return examples;
}

}  // namespace predictor

TEMPLATE_LIST_TEST_CASE(
    "Predictor: gradients of texts of several lengths, under both heads and any encoder", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  if constexpr (std::is_same_v<T, double>) {
    const auto examples = infty::tests::small_examples(5);
    auto classes = infty::tests::small_classifier<T, B>();
    CHECK(predictor::worst_gradient<T, B>(classes, examples) < 1e-7);
    using Span = infty::SpanHead<T, B>;
    auto spans =
        infty::tests::small_predictor<Span, infty::SelfAttention<T, B>>(Span(4, Random(9)));
    CHECK(predictor::worst_gradient<T, B>(spans, predictor::with_spans(examples)) < 1e-7);
    auto causal =
        infty::tests::small_predictor<Span, infty::CausalAttention<T, B>>(Span(4, Random(9)));
    CHECK(predictor::worst_gradient<T, B>(causal, predictor::with_spans(examples)) < 1e-7);
  } else {
    auto model = infty::tests::small_classifier<T, B>();
    const auto examples = infty::tests::small_examples(5);
    const auto losses = model.losses(examples);
    double mean = 0;
    for (const double loss : losses) mean += loss / 5;
    CHECK(static_cast<double>(model.loss(examples).value().item()) == Approx(mean).epsilon(1e-5));
  }
}

TEST_CASE("Predictor: losses, answers and keys are those of each text by itself") {
  const auto model = infty::tests::small_classifier<double>();
  const auto examples = infty::tests::small_examples(9);
  const auto losses = model.losses(examples);
  const auto answers = model.answers(examples);
  const auto keys = model.keys(examples);
  REQUIRE(keys.shape() == Shape{9, 4});
  double mean = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    const std::span<const Example> one(&examples[i], 1);
    CHECK(losses[i] == Approx(model.losses(one)[0]).epsilon(1e-12));
    CHECK(answers[i] == model.answers(one)[0]);
    const auto key = model.keys(one).to_vector();
    for (std::size_t d = 0; d < 4; ++d)
      CHECK(keys.to_vector()[4 * i + d] == Approx(key[d]).epsilon(1e-12));
    mean += losses[i] / 9;
  }
  CHECK(model.loss(examples).value().item() == Approx(mean).epsilon(1e-12));
}

namespace predictor {

/// A head that reads the first vector, and does not say that it reads no other.
struct Wasteful : infty::ClassHead<double> {
  static constexpr bool first_only = false;
};

}  // namespace predictor

TEST_CASE(
    "Predictor: answers of first tokens alone, and their gradients, are those of all tokens") {
  for (const Index layers : {1, 2}) {
    auto model =
        infty::tests::small_predictor<infty::ClassHead<double>, infty::SelfAttention<double>>(
            infty::ClassHead<double>(4, 3, Random(7)), 3, layers);
    infty::Predictor whole(model.embedding, model.body, predictor::Wasteful{model.head});
    const auto examples = infty::tests::small_examples(9);
    CHECK(model.read(examples).hidden.front().dim(1) == 1);
    CHECK(whole.read(examples).hidden.front().dim(1) > 1);
    const auto gradients = [&](auto& of) {
      for (const auto& [name, variable] : infty::named_parameters<double>(of)) {
        auto handle = variable;
        handle.zero_grad();
      }
      infty::Tape tape;
      const auto loss = of.loss(examples);
      std::vector<double> out{loss.value().item()};
      tape.backward(loss);
      for (const auto& [name, variable] : infty::named_parameters<double>(of))
        for (const double x : variable.grad().to_vector()) out.push_back(x);
      return out;
    };
    const auto one = gradients(model), other = gradients(whole);
    REQUIRE(one.size() == other.size());
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(std::abs(one[i] - other[i]) < 1e-12);
    CHECK(model.answers(examples) == whole.answers(examples));
  }
}

TEST_CASE("Predictor: layers of several types leave out no vector that is wanted") {
  using Both = infty::Block<infty::SelfAttention<double>>;
  using Past = infty::Block<infty::CausalAttention<double>>;
  static_assert(infty::answers_first<infty::Layers<Past, Both>>);
  static_assert(!infty::answers_first<infty::Layers<Both, Past>>);
  static_assert(!infty::answers_first<infty::Layers<Past>>);
  const infty::TransformerConfig config{
      .vocabulary = 11, .model_dim = 4, .layers = 1, .heads = 2, .feed_forward = 5};
  const auto both = infty::blocks<infty::SelfAttention<double>>(config, {}, Random(1)).layers[0];
  const auto past = infty::blocks<infty::CausalAttention<double>>(config, {}, Random(2)).layers[0];
  const auto examples = infty::tests::small_examples(9);
  const infty::PositionedEmbedding<double> embedding(11, 8, 4, Random(3), .7);
  const infty::ClassHead<double> head(4, 3, Random(4));
  const auto same = [&](auto first, auto second) {
    const infty::Layers<decltype(first), decltype(second)> layers(first, second);
    const infty::Predictor model(embedding, layers, head);
    const infty::Predictor whole(embedding, layers, predictor::Wasteful{head});
    const auto one = model.losses(examples), other = whole.losses(examples);
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(std::abs(one[i] - other[i]) < 1e-12);
    return model.read(examples).hidden.front().dim(1) == 1;
  };
  CHECK(same(past, both));
  CHECK_FALSE(same(both, past));
}

TEST_CASE("ClassHead: the softmax of a map of the first vector, by hand") {
  infty::ClassHead<double> head(2, 3, Random(5));
  const auto w = head.map.weight.value().to_vector(), b = head.map.bias.value().to_vector();
  const auto hidden = Tensor<double, infty::EigenBackend>::from(Shape{1, 2, 2}, {.3, -.8, 5, 6});
  double scores[3], sum = 0;
  for (std::size_t c = 0; c < 3; ++c) {
    scores[c] = w[2 * c] * .3 - w[2 * c + 1] * .8 + b[c];
    sum += std::exp(scores[c]);
  }
  const Index best = std::max_element(scores, scores + 3) - scores;
  CHECK(head.answers(hidden) == std::vector<std::vector<Index>>{{best}});
  for (std::size_t c = 0; c < 3; ++c)
    CHECK(head.losses(hidden, Tensor<Index>::from(Shape{1, 1}, {static_cast<Index>(c)}))
              .value()
              .item() == Approx(std::log(sum) - scores[c]).epsilon(1e-12));
}

TEST_CASE(
    "SpanHead: the answer is the most probable span of all, which does not end before it begins") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const infty::SpanHead<double> head(3, Random(seed));
    Random random(seed);
    Tensor<double, infty::EigenBackend> vectors(Shape{2, 6, 3});
    infty::fill_normal(vectors, 0, 2, random);
    const Variable<double> hidden(vectors);
    const auto scores = head.logits(hidden).value().to_vector();
    const auto answers = head.answers(hidden);
    for (std::size_t n = 0; n < 2; ++n) {
      double best = -1e9;
      std::vector<Index> span;
      for (std::size_t first = 0; first < 6; ++first)
        for (std::size_t last = first; last < 6; ++last)
          if (const double p = scores[n * 12 + first] + scores[n * 12 + 6 + last]; p > best) {
            best = p;
            span = {static_cast<Index>(first), static_cast<Index>(last)};
          }
      CHECK(answers[n] == span);
    }
  }
}

TEST_CASE("ClassHead and SpanHead: a score that is NaN has no answer") {
  infty::ClassHead<double> head(2, 3, Random(5));
  infty::SpanHead<double> span(2, Random(5));
  auto hidden = infty::Tensor<double>::full({2, 3, 2}, .5);
  CHECK(head.answers(hidden).size() == 2);
  CHECK(span.answers(hidden).size() == 2);
  hidden.data()[6] = infty::math::not_a_number<double>;  // of the second text's first token
  CHECK_THROWS_AS(head.answers(hidden), infty::NonFiniteError);
  CHECK_THROWS_AS(span.answers(hidden), infty::NonFiniteError);
}

TEST_CASE("Predictor: what it is given wrong is refused") {
  const auto model = infty::tests::small_classifier<double>();
  const auto refused = [&](const Example& e) { return std::vector<Example>{{{1, 2}, {0}}, e}; };
  CHECK_THROWS_AS(model.loss({}), infty::ValueError);
  CHECK_THROWS_AS(model.keys({}), infty::ValueError);
  CHECK(model.answers({}).empty());
  CHECK(model.losses({}).empty());
  CHECK_THROWS_AS(model.loss(refused({{}, {0}})), infty::ValueError);
  CHECK_THROWS_AS(model.loss(refused({{11}, {0}})), infty::ValueError);
  CHECK_THROWS_AS(model.loss(refused({{1}, {3}})), infty::ValueError);
  CHECK_THROWS_AS(model.loss(refused({{1}, {infty::ignore_index}})), infty::ValueError);
  CHECK_THROWS_AS(model.losses(refused({{1}, {infty::ignore_index}})), infty::ValueError);
  const infty::SpanHead<double> span(4, Random(1));
  const infty::Variable<double> hidden(infty::Tensor<double>::zeros({1, 3, 4}));
  const auto ends = infty::Tensor<Index>::from({1, 2}, {0, infty::ignore_index});
  CHECK_THROWS_AS(span.losses(hidden, ends), infty::ValueError);
  CHECK_THROWS_AS(model.loss(refused({{1}, {}})), infty::ShapeError);
  const auto three = infty::tests::small_examples(3);
  for (const Index n : {1, 2, 4})
    CHECK_THROWS_WITH(model.loss(model.read(infty::tests::small_examples(n)), three),
                      Catch::Contains("there are 3 examples: "));
  CHECK_THROWS_AS(model.answers(refused({{1, 2, 3, 4, 5, 6, 7, 8, 9}, {0}})), infty::ShapeError);
}
