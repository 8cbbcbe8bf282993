// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <infty/lifelong/learn_stream.hpp>
#include <infty/lifelong/meta_replay.hpp>
#include <infty/lifelong/neuromodulator.hpp>
#include <infty/testing/gradient_check.hpp>

#include "lifelong/by_hand.hpp"
#include "lifelong/predictor_case.hpp"
#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Example;
using infty::Index;
using infty::LocalAdaptationConfig;
using infty::Random;
using infty::Shape;
using infty::Tensor;

namespace gates {

using infty::tests::ByHand, infty::tests::Identity, infty::tests::Numbers,
    infty::tests::PlainEmbedding;
using Gate = infty::Neuromodulator<PlainEmbedding, Identity>;
using Model = infty::Predictor<PlainEmbedding, Identity, infty::ClassHead<double>, Gate>;

constexpr std::size_t tokens = infty::tests::tiny_tokens, d = infty::tests::tiny_width,
                      classes = infty::tests::tiny_classes, width = 5;
constexpr std::size_t read = ByHand::bias + classes, w1 = read + tokens * d, b1 = w1 + width * d,
                      w2 = b1 + width, b2 = w2 + d * width, all = b2 + d;

infty::Learner<Model> learner() {
  const auto plain = infty::tests::tiny_model();
  // Gates that are far from a half, and from each other.
  Gate gate(infty::tests::tiny_model(9).embedding, Identity{}, d, width, Random(7));
  auto scaled = gate.second.weight;
  for (double& x : std::span(scaled.value().data(), d * width)) x *= 6;
  return {Model(plain.embedding, plain.body, plain.head, gate),
          d,
          {.adam = {.learning_rate = .01}, .seed = 5}};
}

/// The gated classifier without the library: its numbers are those of `ByHand`, and behind them
/// the gate's frozen embedding, its maps and their biases.
struct Gated {
  Numbers w;

  struct Pass {
    Numbers u, h, e, p;  ///< relu(W₁ x + b₁), gates, gated vector, probabilities
  };

  Pass forward(std::size_t token) const {
    Pass out{Numbers(width), Numbers(d), Numbers(d), Numbers(classes)};
    for (std::size_t i = 0; i < width; ++i) {
      double sum = w[b1 + i];
      for (std::size_t k = 0; k < d; ++k) sum += w[w1 + i * d + k] * w[read + token * d + k];
      out.u[i] = std::max(sum, 0.);
    }
    for (std::size_t k = 0; k < d; ++k) {
      double sum = w[b2 + k];
      for (std::size_t i = 0; i < width; ++i) sum += w[w2 + k * width + i] * out.u[i];
      out.h[k] = 1 / (1 + std::exp(-sum));
      out.e[k] = w[token * d + k] * out.h[k];
    }
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      double score = w[ByHand::bias + c];
      for (std::size_t k = 0; k < d; ++k) score += w[ByHand::map + c * d + k] * out.e[k];
      sum += out.p[c] = std::exp(score);
    }
    for (double& x : out.p) x /= sum;
    return out;
  }

  Numbers gradient(const std::vector<Example>& examples) const {
    Numbers g(w.size(), 0);
    for (const Example& e : examples) {
      const auto token = static_cast<std::size_t>(e.tokens[0]);
      const auto label = static_cast<std::size_t>(e.labels[0]);
      const Pass pass = forward(token);
      Numbers of_e(d, 0), of_u(width, 0);
      for (std::size_t c = 0; c < classes; ++c) {
        const double error =
            (pass.p[c] - (c == label ? 1 : 0)) / static_cast<double>(examples.size());
        g[ByHand::bias + c] += error;
        for (std::size_t k = 0; k < d; ++k) {
          g[ByHand::map + c * d + k] += error * pass.e[k];
          of_e[k] += error * w[ByHand::map + c * d + k];
        }
      }
      for (std::size_t k = 0; k < d; ++k) {
        g[token * d + k] += of_e[k] * pass.h[k];
        const double of_s = of_e[k] * w[token * d + k] * pass.h[k] * (1 - pass.h[k]);
        g[b2 + k] += of_s;
        for (std::size_t i = 0; i < width; ++i) {
          g[w2 + k * width + i] += of_s * pass.u[i];
          of_u[i] += of_s * w[w2 + k * width + i];
        }
      }
      for (std::size_t i = 0; i < width; ++i) {
        if (pass.u[i] <= 0) continue;
        g[b1 + i] += of_u[i];
        for (std::size_t k = 0; k < d; ++k) g[w1 + i * d + k] += of_u[i] * w[read + token * d + k];
      }
    }
    return g;
  }

  /// A step of the inner loop: the gates stay.
  void descend(const std::vector<Example>& examples, double rate) {
    const Numbers g = gradient(examples);
    for (std::size_t i = 0; i < read; ++i) w[i] -= rate * g[i];
  }

  Index answer(const Example& e) const {
    const Numbers p = forward(static_cast<std::size_t>(e.tokens[0])).p;
    return std::max_element(p.begin(), p.end()) - p.begin();
  }
};

}  // namespace gates

TEST_CASE("ANML-ER: the first-order meta-gradient by hand, a whole run, and its answers") {
  using namespace infty::tests;
  const LocalAdaptationConfig inner{
      .neighbours = 4, .steps = 2, .learning_rate = .3, .lambda = 0, .without = "gate."};
  auto learner = gates::learner();
  infty::MetaReplay<gates::Model> method({.interval = 16, .rate = .2}, inner);
  REQUIRE(method.episodes(batch_size) == 2);  // every second one replays
  gates::Gated hand{numbers_of(learner.model)};
  REQUIRE(hand.w.size() == gates::all);
  const Numbers start = hand.w;
  AdamByHand adam;
  Mirror mirror;
  const auto meta_gradient = [&](Index first, const std::vector<Example>& query) {
    gates::Gated copy = hand;
    for (Index i = first; i < first + 2; ++i) copy.descend(batch(i), .3);
    return copy.gradient(query);
  };
  // Adam leaves alone what is frozen, whose gradient is none.
  const auto step = [&](Numbers g) {
    std::fill(g.begin() + gates::read, g.begin() + gates::w1, 0);
    adam.step(hand.w, g);
  };
  for (Index i = 0; i < 10; ++i) {
    if (i % 5 == 2) {
      method.differentiate(learner, {batch(i - 2), batch(i - 1)}, batch(i));
      const Numbers g = meta_gradient(i - 2, batch(i));
      CHECK(farthest(numbers_of(learner.model, true), g) < 1e-9);
      double of_gates = 0;
      for (std::size_t j = gates::w1; j < gates::all; ++j)
        of_gates = std::max(of_gates, std::abs(g[j]));
      CHECK(of_gates > 1e-3);
    }
    method.learn(learner, batch(i));
    mirror.learner.write(batch(i));
    if (i % 5 == 2) step(meta_gradient(i - 2, batch(i)));
    if (i % 5 == 4) step(meta_gradient(i - 1, mirror.draw(3)));
    CHECK(farthest(numbers_of(learner.model), hand.w) < 1e-9);
  }
  CHECK(std::equal(start.begin() + gates::read, start.begin() + gates::w1,
                   numbers_of(learner.model).begin() + gates::read));
  const auto questions = tiny_examples(30, 77);
  const auto answers = method.answer(learner, questions);
  Random draws = learner.random.split(0);
  gates::Gated adapted = hand;
  for (int i = 0; i < 2; ++i)
    adapted.descend(learner.memory.examples(learner.memory.draw(4, draws)), .3);
  for (std::size_t i = 0; i < questions.size(); ++i)
    CHECK(answers[i] == std::vector<Index>{adapted.answer(questions[i])});
  CHECK_THROWS_AS((infty::LocalAdaptation(learner.model, {.part = "gate.", .without = "gate."})),
                  infty::ValueError);
}

TEST_CASE("Neuromodulator: keys are those of the encoder without a gate") {
  auto learner = gates::learner();
  const auto examples = infty::tests::tiny_examples(7, 3);
  CHECK(learner.model.keys(examples).to_vector() ==
        infty::tests::tiny_model().keys(examples).to_vector());
}

TEMPLATE_LIST_TEST_CASE(
    "Neuromodulator: gates in [0, 1] over a transformer, gradients, and an encoder that stays", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  auto plain = infty::tests::small_classifier<T, B>();
  using Gate = infty::Neuromodulator<decltype(plain.embedding), decltype(plain.body)>;
  infty::Predictor model(plain.embedding, plain.body, plain.head,
                         Gate(plain.embedding, plain.body, 4, 6, Random(8)));
  const auto examples = infty::tests::small_examples(5);
  const auto h = model.gate.forward(Tensor<Index, B>::from(Shape{2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(h.shape() == Shape{2, 1, 4});
  for (const T x : h.value().to_vector()) {
    CHECK(x > 0);
    CHECK(x < 1);
  }
  std::size_t frozen = 0;
  for (const auto& [name, variable] : infty::named_parameters<T, B>(model)) {
    const bool of_reader = name.starts_with("gate.embedding") || name.starts_with("gate.body");
    CHECK(variable.requires_grad() == !of_reader);
    frozen += of_reader ? 1 : 0;
  }
  CHECK(frozen == infty::named_parameters<T, B>(plain.embedding).size() +
                      infty::named_parameters<T, B>(plain.body).size());
  if constexpr (std::is_same_v<T, double>) {
    auto learned = infty::named_parameters<T, B>(model);
    std::erase_if(learned, [](const auto& p) { return !p.variable.requires_grad(); });
    const auto worst =
        infty::gradient_check<T, B>([&] { return model.loss(examples); }, learned).largest;
    CHECK(static_cast<double>(worst) < 1e-7);
  }
  CHECK_THROWS_AS(Gate(plain.embedding, plain.body, 4, 0, Random(8)), infty::ValueError);
  infty::Predictor narrow(plain.embedding, plain.body, plain.head,
                          Gate(plain.embedding, plain.body, 3, 6, Random(8)));
  CHECK_THROWS_AS(narrow.loss(examples), infty::ShapeError);
}
