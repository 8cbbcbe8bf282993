// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/nn/linear.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Random;
using infty::Shape;

TEMPLATE_LIST_TEST_CASE("Linear: y = x Wᵀ + b with the layer's own numbers", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  infty::Linear<T, B> layer(2, 2, Random(1));
  layer.weight.value().copy_from(infty::Tensor<T, B>::from({2, 2}, {1, 2, 3, 4}));
  layer.bias.value().copy_from(infty::Tensor<T, B>::from({2}, {10, 20}));
  const auto y = layer.forward(infty::Tensor<T, B>::from({1, 2}, {1, -1}));
  CHECK(y.value().to_vector() == std::vector<T>{9, 19});
}

TEST_CASE("Linear: drawn from the seed, within 1 / sqrt(in)") {
  const infty::Linear<double> a(16, 50, Random(1)), b(16, 50, Random(1)), c(16, 50, Random(2));
  CHECK(a.weight.value().to_vector() == b.weight.value().to_vector());
  CHECK(a.weight.value().to_vector() != c.weight.value().to_vector());
  double largest = 0;
  for (const double w : a.weight.value().to_vector()) largest = std::max(largest, std::abs(w));
  CHECK(largest <= 0.25);
  CHECK(largest > 0.24);
  CHECK(a.weight.requires_grad());
  CHECK(a.bias.shape() == Shape{50});
}

TEST_CASE("Linear: without a bias there is none to visit") {
  infty::Linear<float> layer(3, 2, Random(1), false);
  CHECK(layer.bias.size() == 0);
  CHECK(infty::count_parameters(layer) == 6);
}

TEST_CASE("Linear: sizes out of range") {
  CHECK_THROWS_WITH(infty::Linear<float>(0, 2, Random(1)),
                    "[Linear] in is 0, out is 2: both must be >= 1");
  CHECK_THROWS_AS(infty::Linear<float>(2, -1, Random(1)), infty::ValueError);
  const infty::Linear<float> layer(3, 2, Random(1));
  CHECK_THROWS_AS(layer.forward(infty::Tensor<float>::zeros({1, 4})), infty::ShapeError);
}
