// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::ignore_index;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("token_losses: by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Softmax of (log 1, log 3) is (1/4, 3/4).
  const T log3 = std::log(T(3));
  const Variable<T, B> logits(Tensor<T, B>::from({2, 2}, {0, log3, 0, log3}));
  const auto losses =
      infty::token_losses(logits, Tensor<Index, B>::from({2}, {0, 1})).value().to_vector();
  CHECK(losses[0] == Approx(std::log(4.0)));
  CHECK(losses[1] == Approx(std::log(4.0 / 3)));
}

TEST_CASE("cross_entropy: the mean over the targets that count") {
  Random random(infty::tests::seed);
  const auto logits = infty::tests::uniform_variable<double>({2, 3, 4}, random, -2, 2);
  const auto targets = Tensor<Index>::from({2, 3}, {1, ignore_index, 3, 0, 0, ignore_index});
  const auto losses = infty::token_losses(logits, targets).value().to_vector();
  CHECK(losses[1] == 0);
  CHECK(losses[5] == 0);
  const double mean = (losses[0] + losses[2] + losses[3] + losses[4]) / 4;
  CHECK(infty::cross_entropy(logits, targets).value().item() == Approx(mean));
  const auto none = Tensor<Index>::full({2, 3}, ignore_index);
  CHECK(infty::cross_entropy(logits, none).value().item() == 0);
  // Another number may stand for "ignored", one that is a class too.
  const auto zeros = Tensor<Index>::full({2, 3}, Index{0});
  CHECK(infty::cross_entropy(logits, zeros, Index{0}).value().item() == 0);
}

TEMPLATE_LIST_TEST_CASE("mean_loss: the mean over the targets that count", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> losses(Tensor<T, B>::from({2, 2}, {1, 0, 2, 6}), true);
  const auto targets = Tensor<Index, B>::from({2, 2}, {3, ignore_index, 0, 5});
  {
    infty::Tape tape;
    const auto mean = infty::mean_loss(losses, targets);
    CHECK(mean.value().item() == T(3));
    tape.backward(mean);
  }
  for (const T gradient : losses.grad().to_vector()) CHECK(gradient == Approx(1.0 / 3));
  const auto none = Tensor<Index, B>::full({2, 2}, ignore_index);
  CHECK(infty::mean_loss(Variable<T, B>(Tensor<T, B>::zeros({2, 2})), none).value().item() == 0);
  CHECK_THROWS_WITH(infty::mean_loss(losses, Tensor<Index, B>::zeros({4})),
                    "[mean_loss] losses are [2, 2], targets [4]: they must have one shape");
}

TEST_CASE("mean_loss: gradient") {
  Random random(infty::tests::seed);
  const auto losses = infty::tests::uniform_variable<double>({2, 3}, random, 0, 2);
  const auto targets = Tensor<Index>::from({2, 3}, {1, 4, 4, 0, 0, 2});
  const auto mean = [&] { return infty::mean_loss(losses * losses, targets); };
  CHECK(infty::gradient_check(mean, std::vector{losses}) < 1e-8);
}

TEST_CASE("cross_entropy: gradient, zero where the target is ignored") {
  Random random(infty::tests::seed);
  const auto logits = infty::tests::uniform_variable<double>({2, 3, 5}, random, -2, 2);
  const auto targets = Tensor<Index>::from({2, 3}, {1, ignore_index, 4, 0, 0, 2});
  const auto mean = [&] { return infty::cross_entropy(logits, targets); };
  CHECK(infty::gradient_check(mean, std::vector{logits}) < 1e-8);
  for (std::size_t j = 5; j < 10; ++j) CHECK(logits.grad().to_vector()[j] == 0);
  const auto squares = [&] {
    const auto losses = infty::token_losses(logits, targets);
    return infty::sum(losses * losses);
  };
  CHECK(infty::gradient_check(squares, std::vector{logits}) < 1e-7);
}

TEMPLATE_LIST_TEST_CASE("token_losses: large logits neither overflow nor vanish", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> logits(Tensor<T, B>::from({1, 3}, {T(1e30), T(-1e30), T(1e30)}), true);
  infty::Tape tape;
  const auto losses = infty::token_losses(logits, Tensor<Index, B>::from({1}, {1}));
  CHECK(losses.value().item() == Approx(2e30));
  tape.backward(infty::sum(losses));
  for (const T g : logits.grad().to_vector()) CHECK(std::isfinite(g));
}

TEMPLATE_LIST_TEST_CASE("token_losses: an infinite logit makes its row NaN, one of -inf no odds",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  constexpr T infinity = infty::math::infinity<T>;
  Variable<T, B> logits(
      Tensor<T, B>::from({3, 3}, {infinity, 1, 2, -infinity, 0, 0, 1, infinity, infinity}), true);
  infty::Tape tape;
  const auto losses = infty::token_losses(logits, Tensor<Index, B>::from({3}, {1, 2, 1}));
  tape.backward(infty::sum(losses));
  const auto loss = losses.value().to_vector();
  CHECK(std::isnan(loss[0]));
  CHECK(loss[1] == Approx(std::log(2.)));
  CHECK(std::isnan(loss[2]));
  const auto gradient = logits.grad().to_vector();
  for (const std::size_t i : {0U, 1U, 2U, 6U, 7U, 8U}) CHECK(std::isnan(gradient[i]));
  CHECK(gradient[3] == 0);
  CHECK(gradient[4] == Approx(.5));
  CHECK(gradient[5] == Approx(-.5));
}

TEST_CASE("cross_entropy: the same bits with one thread and with two") {
  const auto run = [] {
    Random random(infty::tests::seed);
    const auto logits = infty::tests::uniform_variable<float>({3000, 21}, random);
    Tensor<Index> targets(Shape{3000});
    for (Index i = 0; i < 3000; ++i) targets.data()[i] = random.below(21);
    infty::Tape tape;
    const auto loss = infty::cross_entropy(logits, targets);
    tape.backward(loss);
    auto all = logits.grad().to_vector();
    all.push_back(loss.value().item());
    return all;
  };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(2, run));
}

TEST_CASE("cross_entropy: targets that are written before backward are refused") {
  const Variable<float> logits(Tensor<float>::zeros({2, 3}), true);
  auto targets = Tensor<Index>::from({2}, {0, 2});
  infty::Tape tape;
  const auto loss = infty::cross_entropy(logits, targets);
  targets.fill(1);
  CHECK_THROWS_AS(tape.backward(loss), infty::ValueError);
  CHECK_FALSE(logits.has_grad());
}

TEST_CASE("token_losses: shapes and targets that do not fit") {
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  CHECK_THROWS_WITH(
      infty::token_losses(zeros({2, 3}), Tensor<Index>::zeros({3})),
      "[token_losses] logits are [2, 3], targets [3]: they must be [..., vocabulary] and [...]");
  CHECK_THROWS_AS(infty::token_losses(zeros({2, 3}), Tensor<Index>::zeros({1, 2})),
                  infty::ShapeError);
  CHECK_THROWS_AS(infty::token_losses(zeros({}), Tensor<Index>::zeros({})), infty::ShapeError);
  CHECK_THROWS_WITH(infty::token_losses(zeros({2, 3}), Tensor<Index>::from({2}, {2, 3})),
                    "[token_losses] target 3 at place 1: targets must lie in [0, 3)");
  CHECK_THROWS_AS(infty::token_losses(zeros({2, 3}), Tensor<Index>::from({2}, {-1, 0})),
                  infty::ValueError);
}
