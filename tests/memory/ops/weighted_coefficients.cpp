// SPDX-License-Identifier: MIT
#include <type_traits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/memory/ops/weighted_coefficients.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("weighted_coefficients: y[b] = W B[b] by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> weight(Tensor<T, B>::from({2, 2}, {1, 2, 0, -1}));
  const Variable<T, B> x(Tensor<T, B>::from({2, 2, 1}, {1, 10, 2, 20}));
  const auto y = infty::weighted_coefficients(weight, x);
  CHECK(y.shape() == Shape{2, 2, 1});
  CHECK(y.value().to_vector() == std::vector<T>{21, -10, 42, -20});
}

TEST_CASE("weighted_coefficients: gradients of weight and coefficients") {
  Random random(infty::tests::seed);
  const auto weight = infty::tests::uniform_variable<double>({2, 7}, random);
  const auto x = infty::tests::uniform_variable<double>({3, 7, 4}, random);
  const auto loss = [&] {
    const auto y = infty::weighted_coefficients(weight, x);
    return infty::sum(y * y);
  };
  CHECK(infty::gradient_check(loss, std::vector{weight, x}) < 1e-8);
}

TEMPLATE_LIST_TEST_CASE("weighted_coefficients: gradients on every backend", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto gradients = []<class On>(std::type_identity<On>) {
    Random random(infty::tests::seed);
    const auto weight = infty::tests::uniform_variable<T, On>({2, 50}, random);
    const auto x = infty::tests::uniform_variable<T, On>({3, 50, 9}, random);
    infty::Tape tape;
    const auto y = infty::weighted_coefficients(weight, x);
    tape.backward(infty::sum(y * y));
    auto all = weight.grad().to_vector();
    for (const T g : x.grad().to_vector()) all.push_back(g);
    return all;
  };
  CHECK(infty::tests::error(gradients(std::type_identity<B>{}),
                            gradients(std::type_identity<infty::EigenBackend>{})) <
        infty::tests::tolerance<T>);
}

TEST_CASE("weighted_coefficients: shapes that do not fit") {
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  CHECK_THROWS_WITH(infty::weighted_coefficients(zeros({2, 3}), zeros({1, 4, 5})),
                    "[weighted_coefficients] weight is [2, 3], coefficients are [1, 4, 5]: they "
                    "must be [R, N] and "
                    "[B, N, d]");
  CHECK_THROWS_AS(infty::weighted_coefficients(zeros({3}), zeros({1, 3, 5})), infty::ShapeError);
  CHECK_THROWS_AS(infty::weighted_coefficients(zeros({2, 3}), zeros({3, 5})), infty::ShapeError);
}
