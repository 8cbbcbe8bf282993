// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/memory/ops/gate.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

TEMPLATE_LIST_TEST_CASE("gate: the neighbours open it, by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T log3 = std::log(T(3));
  // Before, at and behind: conv = 1 * x[i-1] + 0 * x[i] + 2 * x[i+1], in units of log 3.
  const Variable<T, B> x(Tensor<T, B>::from({1, 3, 1}, {1, 2, -4}));
  const Variable<T, B> weight(Tensor<T, B>::from({3, 1, 1}, {log3, 0, 2 * log3}));
  const Variable<T, B> bias(Tensor<T, B>::from({1}, {-log3}));
  // conv = 4 - 1, 1 - 8 - 1, 2 - 1; sigmoid(n log 3) = 3^n / (1 + 3^n)
  const auto y = infty::gate(x, weight, bias).value().to_vector();
  CHECK(y[0] == Approx(27.0 / 28));
  CHECK(y[1] == Approx(2 * std::pow(3.0, -8) / (1 + std::pow(3.0, -8))));
  CHECK(y[2] == Approx(-4 * 0.75));
}

TEST_CASE("gate: gradients of input, weight and bias, of one vector and of several") {
  Random random(infty::tests::seed);
  for (const Index length : {1, 2, 5}) {
    const auto x = uniform_variable<double>({2, length, 3}, random);
    const auto weight = uniform_variable<double>({3, 3, 3}, random);
    const auto bias = uniform_variable<double>({3}, random);
    const Variable<double> by(infty::tests::uniform_tensor<double>({2, length, 3}, random));
    const auto loss = [&] { return infty::sum(infty::gate(x, weight, bias) * by); };
    CAPTURE(length);
    CHECK(infty::gradient_check(loss, std::vector{x, weight, bias}) < 1e-8);
  }
}

TEST_CASE("gate: rows do not see each other") {
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<double>({3, 4, 2}, random);
  const auto weight = uniform_variable<double>({3, 2, 2}, random);
  const auto bias = uniform_variable<double>({2}, random);
  const auto all = infty::gate(Variable<double>(x), weight, bias);
  for (Index row = 0; row < 3; ++row)
    CHECK(infty::gate(Variable<double>(x.slice(row, row + 1)), weight, bias).value().to_vector() ==
          all.value().slice(row, row + 1).to_vector());
  CHECK(infty::gate(Variable<double>(x.slice(0, 0)), weight, bias).shape() == Shape{0, 4, 2});
  CHECK(infty::gate(Variable<double>(Tensor<double>::zeros({2, 0, 2})), weight, bias).size() == 0);
}

TEST_CASE("gate: the same bits with one thread and with two") {
  const auto run = [] {
    Random random(infty::tests::seed);
    const auto x = uniform_variable<float>({5, 101, 16}, random);
    const auto weight = uniform_variable<float>({3, 16, 16}, random);
    const auto bias = uniform_variable<float>({16}, random);
    infty::Tape tape;
    tape.backward(infty::sum(infty::gate(x, weight, bias)));
    auto all = x.grad().to_vector();
    for (const auto& g : {weight.grad().to_vector(), bias.grad().to_vector()})
      all.insert(all.end(), g.begin(), g.end());
    return all;
  };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(2, run));
}

TEST_CASE("gate: shapes that do not fit") {
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  CHECK_THROWS_WITH(infty::gate(zeros({1, 2, 3}), zeros({3, 3, 4}), zeros({3})),
                    "[gate] x is [1, 2, 3], weight [3, 3, 4], bias [3]: they must be [B, L, d], "
                    "[3, d, d] and [d]");
  CHECK_THROWS_AS(infty::gate(zeros({2, 3}), zeros({3, 3, 3}), zeros({3})), infty::ShapeError);
  CHECK_THROWS_AS(infty::gate(zeros({1, 2, 3}), zeros({3, 3, 3}), zeros({2})), infty::ShapeError);
}
