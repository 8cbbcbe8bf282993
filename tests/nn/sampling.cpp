// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <infty/nn/sampling.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Sampling;
using infty::Shape;
using infty::Tensor;

namespace {

constexpr double no_bound = std::numeric_limits<double>::infinity();

/// How often each class is drawn in so many draws.
std::vector<double> shares_of_draws(const std::vector<double>& logits, const Sampling& sampling,
                                    int draws) {
  std::vector<double> shares(logits.size());
  Random random(5);
  for (int i = 0; i < draws; ++i) {
    const Index drawn = infty::sample(std::span<const double>(logits), sampling, random);
    shares[static_cast<std::size_t>(drawn)] += 1.0 / draws;
  }
  return shares;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("argmax: the likeliest of every row, the first of equals", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const auto logits =
      Tensor<T, B>::from({2, 2, 3}, {0, 2, 1, /**/ 3, -1, 3, /**/ nan, -5, -4, /**/ -1, nan, -2});
  const auto out = infty::argmax(logits);
  CHECK(out.shape() == Shape{2, 2});
  CHECK(out.to_vector() == std::vector<Index>{1, 0, 2, 0});
  CHECK_THROWS_WITH(infty::argmax(Tensor<T, B>(Shape{})),
                    "[argmax] logits are []: they must be [..., classes]");
  CHECK_THROWS_AS(infty::argmax(Tensor<T, B>(Shape{2, 0})), infty::ShapeError);
}

TEMPLATE_LIST_TEST_CASE("sample: a tensor is drawn row by row, the same with the same numbers", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const std::vector<T> scores{0, 1, 2, /**/ 2, 1, 0, /**/ 1, 1, 1, /**/ -3, 0, 3};
  const auto logits = Tensor<T, B>::from({2, 2, 3}, scores);
  Random together(7), alone(7);
  for (int round = 0; round < 20; ++round) {
    const auto out = infty::sample(logits, {.temperature = 2}, together);
    CHECK(out.shape() == Shape{2, 2});
    std::vector<Index> expected;
    for (std::size_t at = 0; at < scores.size(); at += 3)
      expected.push_back(
          infty::sample(std::span<const T>(scores).subspan(at, 3), {.temperature = 2}, alone));
    CHECK(out.to_vector() == expected);
  }
  CHECK(together == alone);
  CHECK(together.counter() == 80);

  const auto likeliest = infty::sample(logits, {.temperature = 0}, together);
  CHECK(likeliest.to_vector() == infty::argmax(logits).to_vector());
  CHECK(together == alone);

  auto broken = scores;
  broken[10] = std::numeric_limits<T>::quiet_NaN();
  CHECK_THROWS_AS(infty::sample(Tensor<T, B>::from({4, 3}, broken), {}, together),
                  infty::NonFiniteError);
  CHECK(together == alone);
  const auto none = Tensor<T, B>::zeros({0, 3});
  CHECK(infty::sample(none, {}, together).size() == 0);
  CHECK_THROWS_AS(infty::sample(none, {.temperature = -1}, together), infty::ValueError);
}

TEST_CASE("sample: classes come as often as the softmax of scores over temperature says") {
  const std::vector<double> logits{1, 0, 2, -1};
  for (const double temperature : {0.5, 1.0, 3.0}) {
    double sum = 0;
    for (const double score : logits) sum += std::exp(score / temperature);
    const auto shares = shares_of_draws(logits, {.temperature = temperature}, 20000);
    // Five standard deviations of 20,000 draws.
    for (std::size_t i = 0; i < logits.size(); ++i)
      CHECK(shares[i] == Approx(std::exp(logits[i] / temperature) / sum).margin(.018));
  }
}

TEST_CASE("sample: top_k leaves the likeliest and their equals, top_p the first of equals") {
  std::vector<double> logits{0, 1, 1, 3};  // 4 %, 10 %, 10 %, 76 %
  const auto drawn = [&](const Sampling& sampling) {
    std::vector<Index> classes;
    const auto shares = shares_of_draws(logits, sampling, 2000);
    for (std::size_t i = 0; i < shares.size(); ++i)
      if (shares[i] > 0) classes.push_back(static_cast<Index>(i));
    return classes;
  };
  CHECK(drawn({}) == std::vector<Index>{0, 1, 2, 3});
  CHECK(drawn({.top_k = 1}) == std::vector<Index>{3});
  CHECK(drawn({.top_k = 2}) == std::vector<Index>{1, 2, 3});
  CHECK(drawn({.top_k = 3}) == std::vector<Index>{1, 2, 3});
  CHECK(drawn({.top_k = 9}) == std::vector<Index>{0, 1, 2, 3});
  CHECK(drawn({.top_p = .5}) == std::vector<Index>{3});
  CHECK(drawn({.top_p = 1e-9}) == std::vector<Index>{3});
  CHECK(drawn({.top_p = .8}) == std::vector<Index>{1, 3});
  CHECK(drawn({.top_p = .95}) == std::vector<Index>{1, 2, 3});
  // The share is that of what top_k has left.
  CHECK(drawn({.top_p = .78}) == std::vector<Index>{1, 3});
  CHECK(drawn({.top_k = 2, .top_p = .78}) == std::vector<Index>{3});
  CHECK(drawn({.temperature = 0, .top_k = 3}) == std::vector<Index>{3});
  logits = {1, 1, 1, 1};
  CHECK(drawn({.top_k = 1}) == std::vector<Index>{0, 1, 2, 3});
  CHECK(drawn({.top_p = .49}) == std::vector<Index>{0, 1});
  CHECK(drawn({.top_p = .5}) == std::vector<Index>{0, 1, 2});  // two have no more than half
}

TEST_CASE("sample: a class of score -infinity is never drawn; what is no score is refused") {
  const std::vector<double> masked{-no_bound, 0, -no_bound};
  const auto shares = shares_of_draws(masked, {.temperature = 100}, 500);
  CHECK(shares[0] + shares[2] == 0);
  Random random(1);
  const auto draw = [&](const std::vector<double>& logits, const Sampling& sampling = {}) {
    return infty::sample(std::span<const double>(logits), sampling, random);
  };
  CHECK_THROWS_WITH(draw({0, no_bound}), "[sample] the score of class 1 is inf: it must be finite");
  CHECK_THROWS_AS(draw({0, std::nan("")}), infty::NonFiniteError);
  CHECK_THROWS_WITH(draw({-no_bound}), "[sample] no class has a score above -infinity");
  CHECK_THROWS_AS(draw({}), infty::ValueError);
  CHECK_THROWS_WITH(draw({0}, {.temperature = -1}),
                    "[Sampling] temperature is -1: it must be finite and at least 0");
  CHECK_THROWS_AS(draw({0}, {.temperature = no_bound}), infty::ValueError);
  CHECK_THROWS_WITH(draw({0}, {.top_k = -1}), "[Sampling] top_k is -1: it must be at least 0");
  CHECK_THROWS_WITH(draw({0}, {.top_p = 0}), "[Sampling] top_p is 0: it must lie in (0, 1]");
  CHECK_THROWS_AS(draw({0}, {.top_p = 1.5}), infty::ValueError);
  CHECK(random.counter() == 0);
}

TEST_CASE("weighed_classes: what may be drawn, with softmax's weights") {
  const std::vector<double> logits{std::log(.1), std::log(.4), -no_bound, std::log(.5)};
  const auto weighed = [&](const Sampling& sampling) {
    return infty::weighed_classes(std::span<const double>(logits), sampling);
  };
  const auto all = weighed({});
  CHECK(all.classes == std::vector<Index>{0, 1, 3});
  CHECK(all.weights[1] / all.weights[0] == Catch::Approx(4));
  CHECK(weighed({.temperature = .5}).weights[1] / weighed({.temperature = .5}).weights[0] ==
        Catch::Approx(16));
  const auto nucleus = weighed({.top_p = .6});
  CHECK(nucleus.classes == std::vector<Index>{3, 1});
  CHECK(nucleus.weights[0] / nucleus.weights[1] == Catch::Approx(1.25));
  CHECK(weighed({.temperature = 0}).classes == std::vector<Index>{3});
  CHECK(weighed({.temperature = 0}).weights == std::vector<double>{1});
}

TEST_CASE("weighed_classes: of many classes, the likeliest in their order") {
  std::vector<double> logits(2000);
  Random random(3);
  for (double& x : logits) x = std::round(20 * random.normal()) / 10;  // many are equal
  std::vector<Index> order(logits.size());
  std::iota(order.begin(), order.end(), Index{0});
  const auto score = [&](Index i) { return logits[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return score(a) > score(b); });
  double sum = 0;
  for (const Index i : order) sum += std::exp(score(i) - score(order[0]));
  for (const double top_p : {.1, .5, .9, .999}) {
    const auto left = infty::weighed_classes(std::span<const double>(logits), {.top_p = top_p});
    double share = 0;
    std::size_t count = 0;
    while (share <= top_p * sum) share += std::exp(score(order[count++]) - score(order[0]));
    REQUIRE(left.classes.size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(left.classes[i] == order[i]);
      CHECK(left.weights[i] == std::exp(score(order[i]) - score(order[0])));
    }
  }
}
