// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/parameters.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Random;
using infty::Shape;
using infty::Tensor;

TEMPLATE_LIST_TEST_CASE("FeedForward: W2 relu(W1 x + b1) + b2 by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  infty::FeedForward<T, B> layer(1, 2, Random(1));
  layer.inner.weight.value().copy_from(Tensor<T, B>::from({2, 1}, {2, -1}));
  layer.inner.bias.value().copy_from(Tensor<T, B>::from({2}, {1, 0}));
  layer.outer.weight.value().copy_from(Tensor<T, B>::from({1, 2}, {3, 5}));
  layer.outer.bias.value().copy_from(Tensor<T, B>::from({1}, {7}));
  infty::Pass<T, B> pass;
  // 2: relu(5, -2) -> 3 * 5 + 7; -2: relu(-3, 2) -> 5 * 2 + 7
  const auto y = layer.forward(Tensor<T, B>::from({2, 1}, {2, -2}), pass);
  CHECK(y.value().to_vector() == std::vector<T>{22, 17});
}

TEST_CASE("FeedForward: gradients, with and without dropout") {
  Random random(infty::tests::seed);
  infty::FeedForward<double> layer(3, 7, random.split(1));
  const auto x = infty::tests::uniform_variable<double>({2, 4, 3}, random);
  auto inputs = infty::parameters<double>(layer);
  CHECK(inputs.size() == 4);
  inputs.push_back(x);
  for (const double drop : {0.0, 0.3}) {
    const auto loss = [&] {
      Random draws(5);
      infty::Pass<double> pass{.random = &draws, .dropout = drop};
      const auto y = layer.forward(x, pass);
      return infty::sum(y * y);
    };
    CAPTURE(drop);
    CHECK(infty::gradient_check(loss, inputs) < 1e-7);
  }
}

TEST_CASE("FeedForward: drops out behind the first map, where the pass brings random numbers") {
  Random random(infty::tests::seed);
  const infty::FeedForward<double> layer(3, 7, random.split(1));
  const auto x = infty::tests::uniform_variable<double>({2, 4, 3}, random);
  Random draws(5), same(5), unused(5);
  infty::Pass<double> dropping{.random = &draws, .dropout = .3}, plain{.dropout = .3};
  const auto outer = [&](const auto& hidden) {
    return layer.outer.forward(hidden).value().to_vector();
  };
  const auto &W = layer.inner.weight, &b = layer.inner.bias;
  CHECK(layer.forward(x, dropping).value().to_vector() ==
        outer(infty::linear_relu(x, W, b, .3, same)));
  CHECK(draws.counter() == same.counter());
  CHECK(draws.counter() > 0);
  CHECK(layer.forward(x, plain).value().to_vector() ==
        outer(infty::linear_relu(x, W, b, 0, unused)));
}

TEST_CASE("FeedForward: sizes that do not fit") {
  CHECK_THROWS_AS(infty::FeedForward<float>(3, 0, Random(1)), infty::ValueError);
  const infty::FeedForward<float> layer(3, 4, Random(1));
  infty::Pass<float> pass;
  CHECK_THROWS_AS(layer.forward(Tensor<float>::zeros({2, 4}), pass), infty::ShapeError);
}

TEMPLATE_LIST_TEST_CASE("linear_relu and add_dropped: the values and gradients of what they join",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<T, B>({3, 5, 6}, random);
  const auto weight = infty::tests::uniform_variable<T, B>({7, 6}, random);
  const auto bias = infty::tests::uniform_variable<T, B>({7}, random);
  const auto other = infty::tests::uniform_variable<T, B>({3, 5, 7}, random);
  for (const double drop : {0.0, 0.3}) {
    const auto run = [&](bool joined) {
      Random draws(5);
      for (auto v : {x, weight, bias, other}) v.zero_grad();
      infty::Tape tape;
      const auto hidden =
          joined ? infty::linear_relu(x, weight, bias, drop, draws)
                 : infty::dropout(infty::relu(infty::linear(x, weight, bias)), drop, draws);
      const auto y = joined ? infty::add_dropped(other, hidden, drop, draws)
                            : other + infty::dropout(hidden, drop, draws);
      tape.backward(infty::sum(y * y));
      std::vector<T> all = y.value().to_vector();
      for (const auto& v : {x, weight, bias, other})
        for (const T g : v.grad().to_vector()) all.push_back(g);
      all.push_back(static_cast<T>(draws.counter()));
      return all;
    };
    CAPTURE(drop);
    CHECK(infty::tests::error(run(true), run(false)) < infty::tests::tolerance<T>);
  }
}

TEST_CASE("linear_relu and add_dropped: what does not fit is refused") {
  Random random(1);
  const infty::Variable<float> x(Tensor<float>::zeros({2, 3})),
      weight(Tensor<float>::zeros({4, 3}));
  CHECK_THROWS_WITH(infty::linear_relu(weight, infty::Variable<float>(Tensor<float>::zeros({4, 4})),
                                       {}, 0, random),
                    "[linear_relu] x is [4, 3], weight is [4, 4]: x must be [..., in] and weight "
                    "[out, in]");
  CHECK_THROWS_WITH(infty::add_dropped(x, weight, 0, random),
                    "[add_dropped] a is [2, 3], b is [4, 3]: the shapes must be equal");
  CHECK_THROWS_AS(infty::add_dropped(x, x, 1, random), infty::ValueError);
  CHECK(random.counter() == 0);
}
