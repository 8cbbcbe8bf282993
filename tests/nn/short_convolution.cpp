// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/core/state.hpp>
#include <infty/nn/short_convolution.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::ShortConvolution;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

TEMPLATE_LIST_TEST_CASE("short_convolution: by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Two channels; the last tap is the current place's, and what is older is in the past.
  const Variable<T, B> x(Tensor<T, B>::from({1, 3, 2}, {1, 10, 2, 20, 3, 30}), true);
  const Variable<T, B> past(Tensor<T, B>::from({1, 2, 2}, {5, 50, 7, 70}), true);
  const Variable<T, B> weight(Tensor<T, B>::from({2, 2}, {100, 1, 1000, 2}), true);
  const Variable<T, B> bias(Tensor<T, B>::from({2}, {.5, 0}), true);
  infty::Tape tape;
  const auto near = infty::short_convolution(x, past, weight, bias);
  CHECK(near.value().to_vector() == std::vector<T>{701.5, 70020, 102.5, 10040, 203.5, 20060});
  tape.backward(infty::sum(near));
  CHECK(x.grad().to_vector() == std::vector<T>{101, 1002, 101, 1002, 1, 2});
  CHECK(past.grad().to_vector() == std::vector<T>{0, 0, 100, 1000});
  CHECK(weight.grad().to_vector() == std::vector<T>{10, 6, 100, 60});
  CHECK(bias.grad().to_vector() == std::vector<T>{3, 3});
  const auto far = infty::short_convolution(x, past, weight, Variable<T, B>(), 2);
  CHECK(far.value().to_vector() == std::vector<T>{501, 50020, 702, 70040, 103, 10060});
}

TEMPLATE_LIST_TEST_CASE("ShortConvolution: in pieces as at once, and gradients through the pieces",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index length = 11;
  for (const auto& config : {infty::ShortConvolutionConfig{.kernel = 1},
                             infty::ShortConvolutionConfig{.kernel = 4, .bias = true},
                             infty::ShortConvolutionConfig{.kernel = 3, .dilation = 2}}) {
    const ShortConvolution<T, B> layer(config, 5, Random(2));
    const auto run = [&](const std::vector<Index>& pieces) {
      Random random(infty::tests::seed);
      const auto x = uniform_variable<T, B>({2, length, 5}, random);
      const Variable<T, B> by(uniform_tensor<T, B>({2, length, 5}, random));
      layer.weight.grad().fill(T(0));
      infty::Tape tape;
      auto state = layer.make_state(2);
      Variable<T, B> y(Tensor<T, B>(Shape{2, 0, 5}));
      Index at = 0;
      for (const Index piece : pieces) {
        y = concat(y, layer.forward(state, narrow(x, at, at + piece)));
        at += piece;
      }
      tape.backward(infty::sum(y * by));
      auto all = y.value().to_vector();
      for (const auto& more :
           {state.past.value().to_vector(), x.grad().to_vector(), layer.weight.grad().to_vector()})
        all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    const auto at_once = run({length});
    CAPTURE(config.kernel, config.dilation);
    CHECK(infty::tests::error(run({1, 4, 1, 5}), at_once) < infty::tests::tolerance<T>);
    CHECK(infty::tests::error(run(std::vector<Index>(11, 1)), at_once) <
          infty::tests::tolerance<T>);
  }
}

TEST_CASE("short_convolution: gradients") {
  Random random(infty::tests::seed);
  for (const Index dilation : {1, 3}) {
    const auto x = uniform_variable<double>({2, 7, 3}, random),
               past = uniform_variable<double>({2, 2 * dilation + 1, 3}, random),
               weight = uniform_variable<double>({3, 3}, random),
               bias = uniform_variable<double>({3}, random);
    const Variable<double> by(uniform_tensor<double>({2, 7, 3}, random));
    CHECK(infty::gradient_check(
              [&] {
                return infty::sum(infty::short_convolution(x, past, weight, bias, dilation) * by);
              },
              std::vector{x, past, weight, bias}) < 1e-8);
  }
}

TEST_CASE("ShortConvolution: its state is of rows") {
  const ShortConvolution<float> layer({.kernel = 3, .dilation = 2}, 4, Random(1));
  Random random(infty::tests::seed);
  const Variable<float> x(uniform_tensor<float>({2, 6, 4}, random));
  auto state = layer.make_state(2);
  CHECK(state.past.shape() == Shape{2, 5, 4});
  layer.forward(state, x);
  CHECK(state.past.value().to_vector() == narrow(x, 1, 6).value().to_vector());
  infty::reset_row(state, 1);
  CHECK(infty::take_rows(state, 1, 2).past.value().to_vector() ==
        layer.make_state(1).past.value().to_vector());
}

TEST_CASE("ShortConvolution: what does not fit") {
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  CHECK_THROWS_WITH(
      infty::short_convolution(zeros({1, 2, 3}), zeros({1, 2, 3}), zeros({3, 4})),
      "[short_convolution] x is [1, 2, 3], past [1, 2, 3], weight [3, 4], bias [0], dilation 1: "
      "they must be [B, L, C], [B, (kernel - 1) dilation or more, C], [C, kernel] and [C] or "
      "empty");
  CHECK_THROWS_AS(
      infty::short_convolution(zeros({1, 2, 3}), zeros({1, 3, 3}), zeros({3, 4}), zeros({2})),
      infty::ShapeError);
  CHECK_THROWS_AS(infty::short_convolution(zeros({1, 2, 3}), zeros({1, 3, 3}), zeros({3, 4}),
                                           Variable<float>(), 0),
                  infty::ValueError);
  const auto make = [](infty::ShortConvolutionConfig config, Index channels) {
    return ShortConvolution<float>(config, channels, Random(1));
  };
  CHECK_THROWS_WITH(make({.kernel = 0}, 3),
                    "[ShortConvolutionConfig] kernel is 0: it must be at least 1");
  CHECK_THROWS_WITH(make({.dilation = -1}, 3),
                    "[ShortConvolutionConfig] dilation is -1: it must be at least 1");
  CHECK_THROWS_AS(make({.kernel = Index{1} << 40, .dilation = Index{1} << 40}, 3),
                  infty::ValueError);
  CHECK_THROWS_WITH(make({}, 0), "[ShortConvolution] channels is 0: it must be >= 1");
  CHECK_THROWS_AS(make({}, Index{1} << 60), infty::ValueError);

  const auto layer = make({}, 3);
  auto state = layer.make_state(2);
  layer.forward(state, Variable<float>(Tensor<float>::full({2, 1, 3}, 1.0f)));
  const auto before = state.past.value().to_vector();
  CHECK_THROWS_AS(layer.forward(state, zeros({1, 2, 3})), infty::ShapeError);
  CHECK_THROWS_AS(layer.forward(state, zeros({2, 2, 4})), infty::ShapeError);
  CHECK(state.past.value().to_vector() == before);
  CHECK_THROWS_AS(layer.make_state(0), infty::ValueError);
}
