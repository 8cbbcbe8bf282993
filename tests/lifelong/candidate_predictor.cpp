// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include <infty/autograd/clone.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/lifelong/candidate_predictor.hpp>
#include <infty/lifelong/learn_stream.hpp>
#include <infty/lifelong/mbpa.hpp>
#include <infty/lifelong/meta_mbpa.hpp>
#include <infty/lifelong/meta_replay.hpp>
#include <infty/lifelong/neuromodulator.hpp>
#include <infty/lifelong/online_ewc.hpp>
#include <infty/testing/gradient_check.hpp>

#include "lifelong/predictor_case.hpp"
#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Example;
using infty::Index;
using infty::Random;

namespace candidate_predictor {

/// Token 1 stands in front of candidates.
template <class T, class B = infty::EigenBackend>
auto small(std::uint64_t draws = 3) {
  const auto encoder = infty::tests::small_classifier<T, B>(draws);
  return infty::CandidatePredictor(encoder.embedding, encoder.body,
                                   infty::Linear<T, B>(4, 1, Random(draws + 2), false), 1);
}

template <class T, class B = infty::EigenBackend>
auto gated(std::uint64_t draws = 3) {
  const auto plain = small<T, B>(draws);
  return infty::CandidatePredictor(
      plain.embedding, plain.body, plain.head, 1,
      infty::Neuromodulator(plain.embedding, plain.body, 4, 4, Random(draws + 3)));
}

const std::vector<Example> examples{{.tokens = {0, 5, 1, 3, 1, 4, 6}, .labels = {1}},
                                    {.tokens = {0, 7, 8, 1, 9, 1, 2, 1, 3}, .labels = {0}},
                                    {.tokens = {0, 6, 1, 4, 1}, .labels = {0}},
                                    {.tokens = {0, 1, 5, 1, 7, 1, 9}, .labels = {2}}};

/// The pairs of these examples, as a `Predictor` of one class would read each by itself.
const std::vector<std::vector<std::vector<Index>>> pairs{
    {{0, 5, 1, 3}, {0, 5, 1, 4, 6}},
    {{0, 7, 8, 1, 9}, {0, 7, 8, 1, 2}, {0, 7, 8, 1, 3}},
    {{0, 6, 1, 4}, {0, 6, 1}},
    {{0, 1, 5}, {0, 1, 7}, {0, 1, 9}}};

/// Sentences of two words, the first of which tells one of four relations, whose names are words 6
/// to 9; two names stand behind.
std::vector<Example> sentences(Index n, Random random) {
  std::vector<Example> out;
  for (Index i = 0; i < n; ++i) {
    const Index a = random.below(4), b = random.below(2);
    Example e{.tokens = {0, 2 + a}, .labels = {}};
    const Index other = random.below(3), place = random.below(2);
    for (Index c = 0; c < 2; ++c) {
      e.tokens.push_back(1);
      e.tokens.push_back(6 + (c == place ? a : other < a ? other : other + 1));
    }
    e.tokens.insert(e.tokens.begin() + 2, 10 * b);
    e.labels = {place};
    out.push_back(e);
  }
  return out;
}

}  // namespace candidate_predictor

TEMPLATE_LIST_TEST_CASE("CandidatePredictor: gradients, with gates and without", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using candidate_predictor::examples;
  auto plain = candidate_predictor::small<T, B>();
  auto gated = candidate_predictor::gated<T, B>();
  const auto check = [&](auto& model) {
    if constexpr (std::is_same_v<T, double>) {
      auto learned = infty::named_parameters<T, B>(model);
      std::erase_if(learned, [](const auto& p) { return !p.variable.requires_grad(); });
      const auto worst =
          infty::gradient_check<T, B>([&] { return model.loss(examples); }, learned).largest;
      CHECK(static_cast<double>(worst) < 1e-7);
    }
    const auto losses = model.losses(examples);
    double mean = 0;
    for (const double loss : losses) mean += loss / static_cast<double>(losses.size());
    CHECK(static_cast<double>(model.loss(examples).value().item()) == Approx(mean).epsilon(1e-5));
  };
  check(plain);
  check(gated);
}

TEST_CASE("CandidatePredictor: a softmax of the scores of the pairs, each read by itself") {
  const auto model = candidate_predictor::small<double>();
  const auto& examples = candidate_predictor::examples;
  // The same weights as a classifier of one class: its only logit is the score.
  const infty::Predictor alone(model.embedding, model.body, [&] {
    infty::ClassHead<double> head;
    head.map = model.head;
    return head;
  }());
  const auto losses = model.losses(examples);
  const auto answers = model.answers(examples);
  for (std::size_t i = 0; i < examples.size(); ++i) {
    std::vector<double> scores;
    for (const auto& tokens : candidate_predictor::pairs[i]) {
      const Example pair{.tokens = tokens, .labels = {0}};
      const auto reading = alone.read(std::span<const Example>(&pair, 1));
      scores.push_back(alone.head.logits(reading.hidden[0]).value().item());
    }
    double sum = 0;
    std::size_t best = 0;
    for (std::size_t c = 0; c < scores.size(); ++c) {
      sum += std::exp(scores[c]);
      if (scores[c] > scores[best]) best = c;
    }
    const double own = scores[static_cast<std::size_t>(examples[i].labels[0])];
    CHECK(losses[i] == Approx(std::log(sum) - own).epsilon(1e-12));
    CHECK(answers[i] == std::vector<Index>{static_cast<Index>(best)});
  }
  // Keys are those of the texts alone, whatever the candidates are.
  const std::vector<Example> texts{{.tokens = {0, 5}, .labels = {}},
                                   {.tokens = {0, 7, 8}, .labels = {}},
                                   {.tokens = {0, 6}, .labels = {}},
                                   {.tokens = {0}, .labels = {}}};
  const auto keys = model.keys(examples).to_vector(), wanted = alone.keys(texts).to_vector();
  REQUIRE(keys.size() == wanted.size());
  for (std::size_t i = 0; i < keys.size(); ++i) CHECK(keys[i] == Approx(wanted[i]).epsilon(1e-12));
  CHECK(model.answers({}).empty());
}

TEST_CASE("CandidatePredictor: methods learn which candidate fits, and adapt to it") {
  const std::vector<infty::LifelongTask> tasks{
      {.name = "sentences",
       .training = candidate_predictor::sentences(1600, Random(7)),
       .test = candidate_predictor::sentences(60, Random(8))}};
  const auto knows = [&](auto method, auto model) {
    infty::Learner learner(model, 4, {.adam = {.learning_rate = 1e-2}, .memory = {.capacity = 50}});
    return infty::learn_stream(method, learner, tasks, 8).mean();
  };
  const infty::SparseReplayConfig replay{.interval = 80, .rate = .1};
  const infty::LocalAdaptationConfig little{.neighbours = 4, .steps = 1, .learning_rate = .01};
  using Plain = decltype(candidate_predictor::small<float>());
  using Gated = decltype(candidate_predictor::gated<float>());
  auto head = little;
  head.part = "head.";
  CHECK(knows(infty::Mbpa(replay, head), candidate_predictor::small<float>()) > .8);
  CHECK(knows(infty::MetaMbpa<Plain>(replay, little, 4), candidate_predictor::small<float>()) > .8);
  CHECK(knows(infty::OnlineEwc<Plain>({.lambda = .01, .interval = 400, .sample = 10}),
              candidate_predictor::small<float>()) > .8);
  auto inner = little;
  inner.without = "gate.";
  CHECK(knows(infty::MetaReplay<Gated>(replay, inner), candidate_predictor::gated<float>()) > .5);
}

TEST_CASE("CandidatePredictor: what cannot be is refused") {
  const auto model = candidate_predictor::small<double>();
  const auto loss = [&](const Example& e) { return model.loss(std::span<const Example>(&e, 1)); };
  CHECK_THROWS_WITH(model.loss({}), Catch::Contains("there are no examples"));
  CHECK_THROWS_WITH(model.keys({}), Catch::Contains("there are no examples"));
  CHECK_THROWS_WITH(loss({.tokens = {0, 2, 3}, .labels = {0}}),
                    Catch::Contains("example 0 has no candidates"));
  CHECK_THROWS_AS(loss({.tokens = {0, 1, 3}, .labels = {}}), infty::ShapeError);
  CHECK_THROWS_AS(loss({.tokens = {0, 1, 3}, .labels = {1}}), infty::ValueError);
  CHECK_THROWS_AS(loss({.tokens = {0, 1, 3}, .labels = {infty::ignore_index}}), infty::ValueError);
  CHECK_THROWS_AS(loss({.tokens = {0, 1, 11}, .labels = {0}}), infty::ValueError);
  const std::vector<Example> two(2, {.tokens = {0, 1, 3}, .labels = {0}});
  for (const std::size_t n : {1U, 3U})
    CHECK_THROWS_AS(model.loss(model.read(std::vector<Example>(n, two[0])), two),
                    infty::ShapeError);
  auto lost = candidate_predictor::small<double>();
  lost.head.weight.value().data()[1] = infty::math::not_a_number<double>;
  CHECK_THROWS_AS(lost.answers(two), infty::NonFiniteError);
  const Example front{.tokens = {1, 3}, .labels = {0}};
  CHECK_THROWS_WITH(model.keys(std::span<const Example>(&front, 1)),
                    Catch::Contains("example 0 has no tokens"));
}
