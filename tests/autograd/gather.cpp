// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/gather.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::gather;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("gather: elements by their places, and back", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from({2, 3}, {1, 2, 3, 4, 5, 6}), true);
  const auto indices = Tensor<Index, B>::from({2, 4}, {2, 0, 2, 1, 0, 0, 0, 2});
  infty::Tape tape;
  const auto y = gather(x, indices);
  CHECK(y.value().to_vector() == std::vector<T>{3, 1, 3, 2, 4, 4, 4, 6});
  tape.backward(y, Tensor<T, B>::from({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  CHECK(x.grad().to_vector() == std::vector<T>{2, 4, 4, 18, 0, 8});
}

TEST_CASE("gather: gradients against differences") {
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({2, 2, 3}, random);
  const auto indices = Tensor<Index>::from({2, 2, 2}, {0, 0, 2, 1, 1, 0, 2, 2});
  const auto loss = [&] {
    const auto y = gather(x, indices);
    return infty::sum(y * y);
  };
  CHECK(infty::gradient_check(loss, std::vector{x}) < 1e-9);
}

TEST_CASE("gather: nothing of something, and nothing of nothing") {
  const Variable<float> x(Tensor<float>::zeros({2, 3}), true), none(Tensor<float>::zeros({2, 0}));
  infty::Tape tape;
  const auto y = gather(x, Tensor<Index>::zeros({2, 0}));
  CHECK(y.shape() == Shape{2, 0});
  tape.backward(infty::sum(y));
  CHECK(x.grad().to_vector() == std::vector<float>(6));
  CHECK(gather(none, Tensor<Index>::zeros({2, 0})).size() == 0);
}

TEST_CASE("gather: shapes and indices that do not fit") {
  const Variable<float> x(Tensor<float>::zeros({2, 3}));
  CHECK_THROWS_WITH(
      gather(x, Tensor<Index>::zeros({3, 3})),
      "[gather] x is [2, 3], indices are [3, 3]: they may differ in the last dimension only");
  CHECK_THROWS_AS(gather(x, Tensor<Index>::zeros({2})), infty::ShapeError);
  CHECK_THROWS_WITH(gather(x, Tensor<Index>::from({2, 1}, {0, 3})),
                    "[gather] index 3 at place 1: indices must lie in [0, 3)");
  CHECK_THROWS_AS(gather(x, Tensor<Index>::from({2, 1}, {-1, 0})), infty::ValueError);
  CHECK_THROWS_AS(gather(Variable<float>(Tensor<float>::zeros({})), Tensor<Index>::zeros({})),
                  infty::ShapeError);
}

TEST_CASE("gather: indices that are written before backward are refused") {
  const Variable<float> x(Tensor<float>::zeros({2, 3}), true);
  auto indices = Tensor<Index>::zeros({2, 1});
  infty::Tape tape;
  const auto loss = infty::sum(gather(x, indices));
  indices.fill(1);
  CHECK_THROWS_AS(tape.backward(loss), infty::ValueError);
}
