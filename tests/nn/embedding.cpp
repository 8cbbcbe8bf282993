// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/nn/embedding.hpp>
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

TEMPLATE_LIST_TEST_CASE("embedding: rows of the table, times the factor", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> table(Tensor<T, B>::from({3, 2}, {1, 2, 3, 4, 5, 6}));
  const auto tokens = Tensor<Index, B>::from({2, 2}, {2, 0, 0, 1});
  const auto y = infty::embedding(tokens, table);
  CHECK(y.shape() == Shape{2, 2, 2});
  CHECK(y.value().to_vector() == std::vector<T>{5, 6, 1, 2, 1, 2, 3, 4});
  CHECK(infty::embedding(tokens, table, T(2)).value().to_vector() ==
        std::vector<T>{10, 12, 2, 4, 2, 4, 6, 8});
  CHECK(infty::embedding(Tensor<Index, B>::zeros({0, 3}), table).shape() == Shape{0, 3, 2});
}

TEMPLATE_LIST_TEST_CASE("embedding: rows of a table stored in bfloat16", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  auto table = infty::tests::uniform_variable<T, B>({5, 7}, random);
  const Variable<T, B> full(table.value().template cast<infty::BFloat16>().template cast<T>());
  table.store_in_bfloat16();
  const auto tokens = Tensor<Index, B>::from({2, 3}, {4, 0, 0, 1, 3, 4});
  for (const T factor : {T(1), T(.3)})
    CHECK(infty::embedding(tokens, table, factor).value().to_vector() ==
          infty::embedding(tokens, full, factor).value().to_vector());
  CHECK(infty::embedding(Tensor<Index, B>::zeros({0}), table).shape() == Shape{0, 7});
}

TEST_CASE("embedding: gradient, with a token that comes more than once") {
  Random random(infty::tests::seed);
  const auto table = infty::tests::uniform_variable<double>({4, 3}, random);
  const auto tokens = Tensor<Index>::from({2, 3}, {1, 1, 3, 0, 1, 3});
  for (const double factor : {1.0, 2.5}) {
    const auto loss = [&] {
      const auto y = infty::embedding(tokens, table, factor);
      return infty::sum(y * y);
    };
    CHECK(infty::gradient_check(loss, std::vector{table}) < 1e-8);
    CHECK(table.grad().slice(2, 3).to_vector() == std::vector<double>{0, 0, 0});
  }
}

TEST_CASE("embedding: tokens that are written before backward are refused, the table may be") {
  Variable<float> table(Tensor<float>::full({4, 3}, 1), true);
  auto tokens = Tensor<Index>::from({2}, {1, 3});
  infty::Tape tape;
  const auto loss = infty::sum(infty::embedding(tokens, table));
  table.value().fill(2);
  tape.backward(loss);
  const auto other = infty::sum(infty::embedding(tokens, table));
  tokens.fill(0);  // as a loop does that reads its next batch into the same memory
  CHECK_THROWS_WITH(tape.backward(other),
                    "[backward] input 2, of shape [2], of an operation whose output is [2, 3] was "
                    "written between forward and backward: the gradient needs it as it was");
}

TEST_CASE("embedding: the gradient has the same bits with one thread and with two") {
  const auto gradient = [] {
    Random random(infty::tests::seed);
    const auto table = infty::tests::uniform_variable<float>({7, 64}, random);
    Tensor<Index> tokens(Shape{3000});
    for (Index i = 0; i < 3000; ++i) tokens.data()[i] = random.below(7);
    infty::Tape tape;
    const auto y = infty::embedding(tokens, table, 3.0f);
    tape.backward(infty::sum(y * y));
    return table.grad().to_vector();
  };
  CHECK(infty::tests::with_threads(1, gradient) == infty::tests::with_threads(2, gradient));
}

TEST_CASE("Embedding: normal numbers of the given deviation") {
  const infty::Embedding<double> layer(500, 20, Random(infty::tests::seed), 0.5);
  double sum = 0, squares = 0;
  for (const double w : layer.weight.value().to_vector()) {
    sum += w;
    squares += w * w;
  }
  // 10,000 draws: the mean is good to 0.5 / 100, the deviation to 0.5 / sqrt(20,000); 4 of each.
  CHECK(std::abs(sum / 1e4) < 0.02);
  CHECK(std::abs(std::sqrt(squares / 1e4) - 0.5) < 0.015);
}

TEST_CASE("embedding: tokens out of range are named with their place") {
  const infty::Embedding<float> layer(5, 2, Random(1));
  CHECK_THROWS_WITH(layer.forward(Tensor<Index>::from({3}, {0, 5, 1})),
                    "[embedding] token 5 at place 1: tokens must lie in [0, 5)");
  CHECK_THROWS_AS(layer.forward(Tensor<Index>::from({1}, {-1})), infty::ValueError);
  CHECK_THROWS_AS(
      infty::embedding(Tensor<Index>::zeros({1}), Variable<float>(Tensor<float>::zeros({4}))),
      infty::ShapeError);
  for (const double wrong : {-1., std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_AS((infty::Embedding<float>(2, 2, Random(1), wrong)), infty::ValueError);
  CHECK_THROWS_WITH(infty::Embedding<float>(0, 2, Random(1)),
                    "[Embedding] vocabulary is 0, d is 2: both must be >= 1");
}

TEMPLATE_LIST_TEST_CASE("embedding: a table that keeps its gradient by rows", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Variable<T, B> table(Tensor<T, B>::full({100, 2}, T(1)), true);
  table.set_grad_by_rows(true);
  const auto tokens = Tensor<Index, B>::from({3}, {7, 2, 7});
  infty::Tape tape;
  tape.backward(infty::embedding(tokens, table, T(2)),
                Tensor<T, B>::from({3, 2}, {1, 2, 3, 4, 5, 6}));
  REQUIRE(table.row_grad());
  CHECK(table.row_grad()->rows.to_vector() == std::vector<Index>{2, 7});
  CHECK(table.row_grad()->values.to_vector() == std::vector<T>{6, 8, 12, 16});
}
