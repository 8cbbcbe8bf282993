// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/nn/layer_norm.hpp>
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

TEMPLATE_LIST_TEST_CASE("layer_norm: by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Mean 2, biased variance 1: with epsilon 3 the divisor is 2.
  const Variable<T, B> x(Tensor<T, B>::from({1, 2}, {1, 3}));
  const Variable<T, B> gain(Tensor<T, B>::from({2}, {10, 100}));
  const Variable<T, B> bias(Tensor<T, B>::from({2}, {1, 2}));
  CHECK(infty::layer_norm(x, gain, bias, T(3)).value().to_vector() == std::vector<T>{-4, 52});
}

TEMPLATE_LIST_TEST_CASE("LayerNorm: a new one gives rows of mean 0 and variance 1", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const Index d = 37;
  const auto y = infty::LayerNorm<T, B>(d)
                     .forward(infty::tests::uniform_tensor<T, B>({2, 3, d}, random, -5, 9))
                     .value()
                     .to_vector();
  for (std::size_t row = 0; row < 6; ++row) {
    double sum = 0, squares = 0;
    for (std::size_t j = 0; j < 37; ++j) {
      const double v = static_cast<double>(y[row * 37 + j]);
      sum += v;
      squares += v * v;
    }
    CHECK(std::abs(sum / 37) < infty::tests::tolerance<T>);
    CHECK(std::abs(squares / 37 - 1) < 1e-5);  // epsilon is 1e-5 beside a variance of about 16
  }
}

TEST_CASE("layer_norm: gradients of input, gain and bias") {
  Random random(infty::tests::seed);
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 7}, Shape{2, 40, 5}}) {
    const auto x = uniform_variable<double>(shape, random);
    const auto gain = uniform_variable<double>({shape[-1]}, random);
    const auto bias = uniform_variable<double>({shape[-1]}, random);
    const auto weight = infty::tests::uniform_tensor<double>(shape, random);
    const auto loss = [&] {
      return infty::sum(infty::layer_norm(x, gain, bias) * Variable<double>(weight));
    };
    CAPTURE(shape);
    CHECK(infty::gradient_check(loss, std::vector{x, gain, bias}) < 1e-7);
  }
}

TEST_CASE("layer_norm: a constant row is its bias, and finite numbers stay finite") {
  const infty::LayerNorm<float> norm(3);
  CHECK(norm.forward(Tensor<float>::full({1, 3}, 7.0f)).value().to_vector() ==
        std::vector<float>{0, 0, 0});
  for (const float size : {1e-40f, 1e15f}) {
    const auto y = norm.forward(Tensor<float>::from({1, 3}, {-size, 0, size})).value().to_vector();
    for (const float v : y) CHECK(std::isfinite(v));
  }
}

TEST_CASE("layer_norm: gradients have the same bits with one thread and with two") {
  const auto gradient = [] {
    Random random(infty::tests::seed);
    const auto x = uniform_variable<float>({2000, 33}, random);
    const infty::LayerNorm<float> norm(33);
    infty::Tape tape;
    const auto y = norm.forward(x);
    tape.backward(infty::sum(y * y * y));
    auto all = x.grad().to_vector();
    for (const auto& g : {norm.weight.grad().to_vector(), norm.bias.grad().to_vector()})
      all.insert(all.end(), g.begin(), g.end());
    return all;
  };
  CHECK(infty::tests::with_threads(1, gradient) == infty::tests::with_threads(2, gradient));
}

TEST_CASE("layer_norm: shapes that do not fit") {
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  CHECK_THROWS_WITH(infty::layer_norm(zeros({2, 3}), zeros({4}), zeros({4})),
                    "[layer_norm] x is [2, 3], gain [4], bias [4]: gain and bias must be [d], x "
                    "[..., d]");
  CHECK_THROWS_AS(infty::layer_norm(zeros({2, 3}), zeros({3}), zeros({1, 3})), infty::ShapeError);
  CHECK_THROWS_AS(infty::layer_norm(zeros({}), zeros({3}), zeros({3})), infty::ShapeError);
  CHECK_THROWS_WITH(infty::LayerNorm<float>(0), "[LayerNorm] d is 0: it must be >= 1");
}
