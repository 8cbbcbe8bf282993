// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/parameters.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/multi_head_attention.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::MultiHeadAttention;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

TEMPLATE_LIST_TEST_CASE("MultiHeadAttention: reads of two heads, by hand", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // d = 2, two heads of width 1, all maps the identity: head h weighs coordinate h of the context.
  MultiHeadAttention<T, B> layer(2, 2, 1, Random(1), false);
  layer.visit([](const char*, auto& linear) {
    linear.weight = Variable<T, B>(Tensor<T, B>::from({2, 2}, {1, 0, 0, 1}), true);
  });
  const T log3 = std::log(T(3));
  const Variable<T, B> x(Tensor<T, B>::from({1, 1, 2}, {1, 0}));
  const Variable<T, B> context(Tensor<T, B>::from({1, 2, 2}, {0, 8, log3, 4}));
  CHECK(infty::tests::error(layer.forward(x, context).value().to_vector(),
                            std::vector<double>{.75 * std::log(3.0), 6}) <
        infty::tests::tolerance<T>);
  const auto last =
      layer.forward(x, context, {.visible = Tensor<Index, B>::from({1}, {1})}).value().to_vector();
  CHECK(infty::tests::error(last, std::vector<double>{std::log(3.0), 4}) <
        infty::tests::tolerance<T>);
}

TEST_CASE("MultiHeadAttention: gradients of parameters, input and context") {
  Random random(infty::tests::seed);
  MultiHeadAttention<double> layer(4, 2, 3, Random(1));
  const auto x = uniform_variable<double>({2, 3, 4}, random),
             context = uniform_variable<double>({2, 5, 4}, random);
  auto inputs = infty::parameters<double, infty::EigenBackend>(layer);
  CHECK(inputs.size() == 8);
  inputs.push_back(x);
  inputs.push_back(context);
  for (const bool causal : {false, true}) {
    const auto loss = [&] {
      const auto y = layer.forward(x, context, {.causal = causal});
      return infty::sum(y * y);
    };
    CHECK(infty::gradient_check(loss, inputs) < 1e-8);
  }
}

TEST_CASE("MultiHeadAttention: sizes that there are not") {
  CHECK_THROWS_AS(MultiHeadAttention<float>(0, 1, 1, Random(1)), infty::ValueError);
  CHECK_THROWS_AS(MultiHeadAttention<float>(4, 0, 1, Random(1)), infty::ValueError);
  CHECK_THROWS_AS(MultiHeadAttention<float>(4, -1, -1, Random(1)), infty::ValueError);
  CHECK_THROWS_AS(MultiHeadAttention<float>(4, Index{1} << 40, Index{1} << 40, Random(1)),
                  infty::ValueError);
  const MultiHeadAttention<float> layer(4, 2, 2, Random(1));
  const auto zeros = [](const Shape& s) { return Variable<float>(Tensor<float>::zeros(s)); };
  CHECK_THROWS_AS(layer.forward(zeros({2, 3, 5}), zeros({2, 3, 4})), infty::ShapeError);
  CHECK_THROWS_AS(layer.forward(zeros({2, 3, 4}), zeros({1, 3, 4})), infty::ShapeError);
}
