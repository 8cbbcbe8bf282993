// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/retrieval/retrieved.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Retrieved;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

namespace retrieved_tests {

/// Two queries: one that found token 2 twice and token 0 once, and one that found nothing.
template <class T, class B>
Retrieved<T, B> found() {
  const T log2 = std::log(T(2));
  return {Tensor<T, B>::from({2, 4}, {log2, 0, 0, 9, 1, 2, 3, 4}),
          Tensor<Index, B>::from({2, 4}, std::vector<Index>{2, 0, 2, -1, -1, -1, -1, -1})};
}

}  // namespace retrieved_tests

TEMPLATE_LIST_TEST_CASE("retrieved: weights and probabilities by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto found = retrieved_tests::found<T, B>();
  const auto weights = infty::retrieved_weights(found);
  const double tolerance = infty::tests::tolerance<T>;
  CHECK(infty::tests::error(weights.to_vector(), std::vector<double>{.5, .25, .25, 0, 0, 0, 0, 0}) <
        tolerance);
  CHECK(infty::tests::error(infty::token_probabilities(weights, found.tokens, 3).to_vector(),
                            std::vector<double>{.25, 0, .75, 0, 0, 0}) < tolerance);
  const auto targets = Tensor<Index, B>::from({2}, std::vector<Index>{2, 2});
  CHECK(infty::tests::error(infty::target_probabilities(weights, found.tokens, targets).to_vector(),
                            std::vector<double>{.75, 0}) < tolerance);
  CHECK(infty::retrieved_shares(found, .5).to_vector() == std::vector<T>{T(.5), T(0)});
}

TEMPLATE_LIST_TEST_CASE("retrieved: a score that is NaN is not passed over, wherever it stands", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  constexpr T none = -infty::math::infinity<T>;
  for (const std::size_t at : {0U, 1U, 2U}) {
    std::vector<T> scores{none, 1, none, 1, none, none};
    scores[at] = infty::math::not_a_number<T>;
    const Retrieved<T, B> found{Tensor<T, B>::from({2, 3}, scores),
                                Tensor<Index, B>::zeros({2, 3})};
    const auto weights = infty::retrieved_weights(found).to_vector();
    for (std::size_t i = 0; i < 3; ++i) CHECK(infty::math::is_nan(weights[i]));
    CHECK(std::vector<T>(weights.begin() + 3, weights.end()) == std::vector<T>{1, 0, 0});
    const auto shares = infty::retrieved_shares(found, .5).to_vector();
    CHECK(infty::math::is_nan(shares[0]));
    CHECK(shares[1] == T(.5));
  }
}

TEMPLATE_LIST_TEST_CASE("retrieved: an interpolation with NaN is NaN, with none of it is not", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  constexpr T nan = infty::math::not_a_number<T>;
  const T log_half = std::log(T(.5));
  const Variable<T, B> x(Tensor<T, B>::from({5}, {log_half, log_half, nan, log_half, log_half}));
  const auto p = Tensor<T, B>::from({5}, {nan, nan, T(0), T(.5), T(0)});
  const auto shares = Tensor<T, B>::from({5}, {T(.5), T(0), T(.5), nan, nan});
  const auto y = infty::interpolated(x, p, shares).value().to_vector();
  for (const std::size_t i : {0U, 2U, 3U, 4U}) CHECK(infty::math::is_nan(y[i]));
  CHECK(y[1] == log_half);
}

TEMPLATE_LIST_TEST_CASE("retrieved: an interpolation by hand, and far below what exp can say", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T far = T(-1e4);
  const Variable<T, B> x(Tensor<T, B>::from({2, 2}, {std::log(T(.5)), far, far, std::log(T(.5))}));
  const auto p = Tensor<T, B>::from({2, 2}, {T(.25), T(.75), T(0), T(0)});
  const auto shares = Tensor<T, B>::from({2}, {T(.2), T(0)});
  const auto y = infty::interpolated(x, p, shares).value().to_vector();
  CHECK(infty::tests::error(std::vector<T>{std::exp(y[0]), std::exp(y[1])},
                            std::vector<double>{.2 * .25 + .8 * .5, .2 * .75}) <
        infty::tests::tolerance<T>);
  CHECK(y[2] == far);
  CHECK(y[3] == std::log(T(.5)));
}

TEST_CASE("retrieved: an interpolation's gradient against differences") {
  infty::Random random(infty::tests::seed);
  for (const Shape& shape : {Shape{4, 3}, Shape{4}}) {
    const auto x = infty::tests::uniform_variable<double>(shape, random, -3, 0);
    const auto p = infty::tests::uniform_tensor<double>(shape, random, 0, 1);
    const auto weight = infty::tests::uniform_variable<double>(shape, random).detach();
    const auto shares = Tensor<double>::from({4}, {0, .3, .9, .5});
    CHECK(infty::gradient_check(
              [&] { return infty::sum(infty::interpolated(x, p, shares) * weight); },
              std::vector{x}) < 1e-8);
  }
}

TEST_CASE("retrieved: what a model rules out has no part in a mixture but its own gradient") {
  constexpr float none = -infty::math::infinity<float>;
  Variable<float> x(Tensor<float>::from({1, 4}, {-1, none, none, -2}), true);
  const auto p = Tensor<float>::from({1, 4}, {0, .5F, 0, 0});
  infty::Tape tape;
  const auto y = infty::interpolated(x, p, Tensor<float>::from({1}, {.25F}));
  const auto values = y.value().to_vector();
  CHECK(values[1] == Approx(std::log(.125)));
  CHECK(values[2] == none);
  tape.backward(y, Tensor<float>::from({1, 4}, {1, 0, 2, 0}));
  CHECK(x.grad().to_vector() == std::vector<float>{1, 0, 2, 0});
}

TEMPLATE_LIST_TEST_CASE("retrieved: what was found counts however small it is beside the rest", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const T lower : {T(-30), T(-80), T(-102.5), T(-150), T(-900)}) {
    CAPTURE(lower);
    const auto logits = Tensor<T, B>::from({1, 4}, {0, -2000, -3000, lower});
    const Retrieved<T, B> found{
        Tensor<T, B>::from({1, 5}, {lower, lower, lower, -infty::math::infinity<T>, T(0)}),
        Tensor<Index, B>::from({1, 5}, {1, 3, 1, 2, -1})};
    const auto y = infty::globally_normalized(logits, found, 0).to_vector();
    CHECK(std::abs(y[0]) < 1e-6);
    CHECK(y[1] == Approx(lower + std::log(T(2))).epsilon(1e-6));
    CHECK(y[2] == Approx(-3000).epsilon(1e-6));
    CHECK(y[3] == Approx(lower + std::log(T(2))).epsilon(1e-6));
  }
}

TEMPLATE_LIST_TEST_CASE("retrieved: one normaliser over the vocabulary and what was found", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto found = retrieved_tests::found<T, B>();
  // u of the first query: 1, 2, 1 and alpha's factor 1/2 times 1 of token 0, 2 + 1 of token 2.
  const T log2 = std::log(T(2));
  const auto logits = Tensor<T, B>::from({2, 3}, {0, log2, 0, 0, log2, 0});
  const auto y = infty::globally_normalized(logits, found, -std::log(2.)).to_vector();
  std::vector<double> p;
  for (const T log : y) p.push_back(std::exp(static_cast<double>(log)));
  CHECK(infty::tests::error(p, std::vector<double>{1.5 / 6, 2. / 6, 2.5 / 6, 1. / 4, 2. / 4,
                                                   1. / 4}) < infty::tests::tolerance<T>);
}

TEST_CASE("retrieved: a token that was found and does not exist, and shapes that do not fit") {
  const auto found = retrieved_tests::found<double, infty::EigenBackend>();
  const auto weights = infty::retrieved_weights(found);
  CHECK_THROWS_AS(infty::token_probabilities(weights, found.tokens, 2), infty::ValueError);
  CHECK_THROWS_AS(
      infty::retrieved_weights(Retrieved<double>{Tensor<double>::zeros({2, 3}), found.tokens}),
      infty::ShapeError);
  CHECK_THROWS_AS(infty::target_probabilities(weights, found.tokens, Tensor<Index>::zeros({3})),
                  infty::ShapeError);
  CHECK_THROWS_AS(infty::retrieved_shares(found, 1), infty::ValueError);
  CHECK_THROWS_AS(infty::retrieved_shares(found, std::nan("")), infty::ValueError);
  CHECK_THROWS_AS(infty::interpolated(Variable<double>(Tensor<double>::zeros({2, 3})),
                                      Tensor<double>::zeros({2, 4}), Tensor<double>::zeros({2})),
                  infty::ShapeError);
  CHECK_THROWS_AS(infty::globally_normalized(Tensor<double>::zeros({3, 3}), found, 0),
                  infty::ShapeError);
}
