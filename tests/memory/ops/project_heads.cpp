// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/memory/ops/project_heads.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("project_heads: every head has its rows of the weight", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index batch = GENERATE(1, 3), heads = GENERATE(1, 2), queries = GENERATE(1, 5), D = 3,
              d = 4;
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<T>({batch, heads, queries, d}, random);
  const auto w = infty::tests::uniform_tensor<T>({heads * D, d}, random);
  std::vector<T> expected;
  for (Index b = 0; b < batch; ++b)
    for (Index q = 0; q < queries; ++q)
      for (Index row = 0; row < heads * D; ++row) {
        T sum = 0;
        for (Index k = 0; k < d; ++k)
          sum += x.data()[((b * heads + row / D) * queries + q) * d + k] * w.data()[row * d + k];
        expected.push_back(sum);
      }
  const auto y =
      infty::project_heads(Variable<T, B>(x.template to<B>()), Variable<T, B>(w.template to<B>()));
  CHECK(y.shape() == Shape{batch, queries, heads * D});
  CHECK(infty::tests::error(y.value().to_vector(), expected) < infty::tests::tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("expected_head_values: few queries and many read the same", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Two queries are cheaper by the signal, three hundred by the values.
  Random random(infty::tests::seed);
  const infty::GaussianBasis<T> psi(8, {.1});
  const Index heads = 2, many = 300, d = 6;
  const auto coefficients = infty::tests::uniform_tensor<T, B>({1, 8, d}, random);
  const auto weight = infty::tests::uniform_tensor<T, B>({4, d}, random);
  const auto density = infty::tests::uniform_tensor<T>({2, 1, heads, many}, random, .1, .9);
  const auto read = [&](Index queries) {
    infty::Tensor<T> first(Shape{2, 1, heads, queries});
    for (Index i = 0; i < 2 * heads; ++i)
      for (Index q = 0; q < queries; ++q)
        first.data()[i * queries + q] = density.data()[i * many + q];
    return infty::expected_head_values<infty::GaussianDensity>(
               psi, Variable<T, B>(first.template to<B>()), Variable<T, B>(coefficients),
               Variable<T, B>(weight), true)
        .value()
        .to_vector();
  };
  auto all = read(many);
  all.resize(2 * 4);
  CHECK(infty::tests::error(read(2), all) < 10 * infty::tests::tolerance<T>);
}

TEST_CASE("project_heads: gradients") {
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({2, 2, 3, 4}, random);
  const auto w = infty::tests::uniform_variable<double>({6, 4}, random);
  const auto loss = [&] {
    const auto y = infty::project_heads(x, w);
    return infty::sum(y * y);
  };
  CHECK(infty::gradient_check(loss, std::vector{x, w}, 1e-6) < 1e-8);
}

TEST_CASE("project_heads: shapes that do not fit") {
  const auto zeros = [](Shape shape) {
    return Variable<float>(infty::Tensor<float>::zeros(shape));
  };
  CHECK_THROWS_WITH(
      infty::project_heads(zeros({1, 2, 3, 4}), zeros({5, 4})),
      "[project_heads] x is [1, 2, 3, 4], weight [5, 4]: they must be [B, H, Q, d] and "
      "[H D, d]");
  CHECK_THROWS_AS(infty::project_heads(zeros({1, 2, 3, 4}), zeros({6, 3})), infty::ShapeError);
  CHECK_THROWS_AS(infty::project_heads(zeros({2, 3, 4}), zeros({6, 4})), infty::ShapeError);
}
