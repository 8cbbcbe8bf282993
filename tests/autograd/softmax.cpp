// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/softmax.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::softmax;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

TEMPLATE_LIST_TEST_CASE("softmax: by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T log3 = std::log(T(3));
  const Variable<T, B> x(Tensor<T, B>::from({3, 2}, {0, log3, 5, 5, log3, 0}));
  CHECK(infty::tests::error(softmax(x).value().to_vector(),
                            std::vector<double>{.25, .75, .5, .5, .75, .25}) <
        infty::tests::tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("softmax: gradients add to what is there", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // dx = y (dy - sum of y dy), of halves: 1/2 (dy_0 - dy_1) / 2.
  const Variable<T, B> x(Tensor<T, B>::zeros({1, 2}), true);
  x.grad().fill(T(10));
  infty::Tape tape;
  tape.backward(softmax(x), Tensor<T, B>::from({1, 2}, {3, 1}));
  CHECK(x.grad().to_vector() == std::vector<T>{T(10.5), T(9.5)});
}

TEST_CASE("softmax: gradients against differences, over odd sizes") {
  Random random(infty::tests::seed);
  for (const Shape& shape : {Shape{1}, Shape{5}, Shape{3, 17}, Shape{2, 3, 4}, Shape{4, 1}}) {
    const auto x = uniform_variable<double>(shape, random, -3, 3);
    const auto weight = uniform_variable<double>(shape, random).detach();
    CAPTURE(shape);
    CHECK(infty::gradient_check([&] { return infty::sum(softmax(x) * weight); }, std::vector{x}) <
          1e-9);
  }
}

TEMPLATE_LIST_TEST_CASE("softmax: large, tiny and missing scores", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T infinity = std::numeric_limits<T>::infinity(),
          least = std::numeric_limits<T>::denorm_min();
  const Variable<T, B> x(
      Tensor<T, B>::from({4, 3}, {T(1e30), T(-1e30), T(1e30), T(-1e30), T(-1e30), T(-1e30),
                                  -infinity, 0, -infinity, least, -least, 0}),
      true);
  infty::Tape tape;
  const auto y = softmax(x);
  const double third = 1.0 / 3;
  CHECK(infty::tests::error(y.value().to_vector(),
                            std::vector<double>{.5, 0, .5, third, third, third, 0, 1, 0, third,
                                                third, third}) < infty::tests::tolerance<T>);
  tape.backward(infty::sum(y * y));
  for (const T g : x.grad().to_vector()) CHECK(std::abs(g) < T(1e-6));
}

TEMPLATE_LIST_TEST_CASE("softmax: NaN spoils its row alone, nothing is nothing", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const auto y =
      softmax(Variable<T, B>(Tensor<T, B>::from({2, 2}, {0, nan, 0, 0}))).value().to_vector();
  CHECK(std::isnan(y[0]));
  CHECK(std::isnan(y[1]));
  CHECK(y[2] == T(0.5));
  for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}}) {
    const Variable<T, B> x(Tensor<T, B>::zeros(shape), true);
    infty::Tape tape;
    tape.backward(infty::sum(softmax(x)));
    CHECK(x.has_grad());
  }
}

TEST_CASE("softmax: of a scalar there is none") {
  CHECK_THROWS_WITH(softmax(Variable<float>(Tensor<float>::zeros({}))),
                    "[softmax] x is []: it must have a dimension");
}
