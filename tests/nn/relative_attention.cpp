// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/parameters.hpp>
#include <infty/nn/relative_attention.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEST_CASE("distance_encoding: sines, then cosines, of the distances from the last row on") {
  const auto table = infty::distance_encoding<double>(3, 4);  // frequencies 1 and 1/100
  CHECK(table.shape() == Shape{3, 4});
  const auto x = table.to_vector();
  const std::vector<double> expected{std::sin(2), std::sin(.02),
                                     std::cos(2), std::cos(.02),
                                     std::sin(1), std::sin(.01),
                                     std::cos(1), std::cos(.01),
                                     0,           0,
                                     1,           1};
  for (std::size_t i = 0; i < 12; ++i) CHECK(x[i] == Approx(expected[i]));
}

TEST_CASE("distance_encoding: a longer table ends in the shorter one") {
  const auto all = infty::distance_encoding<float>(9, 6);
  CHECK(all.slice(5, 9).to_vector() == infty::distance_encoding<float>(4, 6).to_vector());
  CHECK(infty::distance_encoding<float>(0, 6).size() == 0);
  CHECK_THROWS_WITH(infty::distance_encoding<float>(4, 5),
                    "[distance_encoding] d is 5: it must be even, >= 2");
  CHECK_THROWS_AS(infty::distance_encoding<float>(4, 0), infty::ValueError);
}

TEST_CASE("RelativeAttention: gradients of all maps") {
  Random random(infty::tests::seed);
  infty::RelativeAttention<double> layer(4, 2, 3, random.split(1));
  auto inputs = infty::parameters<double>(layer);
  CHECK(inputs.size() == 5);
  const auto context = infty::tests::uniform_variable<double>({2, 5, 4}, random);
  const auto x = infty::tests::uniform_variable<double>({2, 3, 4}, random);
  const auto u = infty::tests::uniform_variable<double>({2, 3}, random);
  const auto w = infty::tests::uniform_variable<double>({2, 3}, random);
  const auto encoding = infty::distance_encoding<double>(5, 4);
  for (const auto& v : {context, x, u, w}) inputs.push_back(v);
  const auto loss = [&] {
    const auto z = layer.out.forward(
        layer.read(layer.query.forward(x), context, u, w, encoding, Tensor<Index>()));
    return infty::sum(z * z);
  };
  CHECK(infty::gradient_check(loss, inputs) < 1e-7);
}

TEST_CASE("RelativeAttention: sizes that do not fit") {
  CHECK_THROWS_AS(infty::RelativeAttention<float>(4, 0, 3, Random(1)), infty::ValueError);
  const infty::RelativeAttention<float> layer(4, 2, 3, Random(1));
  const Variable<float> q(Tensor<float>::zeros({1, 2, 6})), x(Tensor<float>::zeros({1, 2, 5}));
  const Variable<float> u(Tensor<float>::zeros({2, 3}));
  CHECK_THROWS_AS(layer.read(q, x, u, u, infty::distance_encoding<float>(2, 4), {}),
                  infty::ShapeError);
}
