// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/rms_norm.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

TEMPLATE_LIST_TEST_CASE("rms_norm: by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // The squares' mean is 4, with epsilon 16.
  const Variable<T, B> x(Tensor<T, B>::from({1, 4}, {2, -2, 2, -2}));
  const Variable<T, B> weight(Tensor<T, B>::from({4}, {10, 100, 1, 2}));
  CHECK(infty::rms_norm(x, weight, T(12)).value().to_vector() == std::vector<T>{5, -50, .5, -1});
}

TEMPLATE_LIST_TEST_CASE("RMSNorm: a new one gives rows of mean square 1", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const Index d = 37;
  const Variable<T, B> x(uniform_tensor<T, B>({2, 3, d}, random, -5, 9));
  const auto normed = infty::RMSNorm<T, B>(d, T(1e-15)).forward(x).value().to_vector();
  for (std::size_t row = 0; row < 6; ++row) {
    double squares = 0;
    for (std::size_t j = row * 37; j < (row + 1) * 37; ++j) {
      squares += static_cast<double>(normed[j]) * static_cast<double>(normed[j]);
    }
    CHECK(std::abs(squares / 37 - 1) < infty::tests::tolerance<T>);
  }
}

TEMPLATE_LIST_TEST_CASE("rms_norm: gradients on every backend are those of arithmetic", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // y = x w r, r = 1/sqrt(x²/1 + 3) of rows of one: x = 1, r = 1/2, dy/dx = w (r - x² r³) = 3/8 w.
  const Variable<T, B> x(Tensor<T, B>::from({2, 1}, {1, -1}), true);
  const Variable<T, B> w(Tensor<T, B>::from({1}, {8}), true);
  infty::Tape tape;
  const auto y = infty::rms_norm(x, w, T(3));
  tape.backward(y, Tensor<T, B>::from({2, 1}, {1, 2}));
  CHECK(x.grad().to_vector() == std::vector<T>{3, 6});
  CHECK(w.grad().to_vector() == std::vector<T>{-.5});
}

TEST_CASE("rms_norm: gradients of input and weight") {
  Random random(infty::tests::seed);
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 7}, Shape{2, 40, 5}}) {
    const auto x = uniform_variable<double>(shape, random);
    const auto weight = uniform_variable<double>({shape[-1]}, random);
    const Variable<double> by(uniform_tensor<double>(shape, random));
    CAPTURE(shape);
    CHECK(infty::gradient_check([&] { return infty::sum(infty::rms_norm(x, weight, .1) * by); },
                                std::vector{x, weight}) < 1e-7);
  }
}

TEST_CASE("rms_norm: zeros stay zeros, and finite numbers finite") {
  for (const float size : {0.0f, 1e-40f, 1e15f}) {
    const Variable<float> x(Tensor<float>::full({1, 3}, size));
    for (const float v : infty::RMSNorm<float>(3, 1e-10f).forward(x).value().to_vector())
      CHECK((std::isfinite(v) && (size > 0 || v == 0)));
  }
}

TEST_CASE("rms_norm: shapes and constants that do not fit") {
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  CHECK_THROWS_WITH(infty::rms_norm(zeros({2, 3}), zeros({4})),
                    "[rms_norm] x is [2, 3], weight [4]: weight must be [d], x [..., d]");
  CHECK_THROWS_AS(infty::rms_norm(zeros({2, 3}), zeros({1, 3})), infty::ShapeError);
  CHECK_THROWS_AS(infty::rms_norm(zeros({}), zeros({1})), infty::ShapeError);
  CHECK_THROWS_WITH(infty::RMSNorm<float>(0), "[RMSNorm] d is 0: it must be >= 1");
  CHECK_THROWS_WITH(infty::RMSNorm<float>(3, -1.0f),
                    "[RMSNorm] epsilon is -1: it must be finite and > 0");
}
