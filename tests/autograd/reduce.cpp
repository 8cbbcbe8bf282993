// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("sum, mean: values and gradients by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto x = Variable<T, B>(Tensor<T, B>::from({2, 2}, {1, 2, 3, 6}), true);
  infty::Tape tape;
  const auto total = infty::sum(x), scaled = infty::sum(x, T(0.5)), average = infty::mean(x);
  CHECK(total.shape() == Shape{});
  CHECK(total.value().item() == T(12));
  CHECK(scaled.value().item() == T(6));
  CHECK(average.value().item() == T(3));
  tape.backward(total + infty::scale(average, T(4)) + scaled);
  CHECK(x.grad().to_vector() == std::vector<T>(4, T(2.5)));
}

TEST_CASE("sum, mean: gradients") {
  infty::Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({4, 5}, random);
  // Of a cubic, central differences are off by h² = 1e-10 times the cubic's coefficient.
  const auto cube = [&] { return x * x * x; };
  CHECK(infty::gradient_check([&] { return infty::sum(cube(), -3.0); }, std::vector{x}) < 1e-9);
  CHECK(infty::gradient_check([&] { return infty::mean(cube()); }, std::vector{x}) < 1e-9);
}

TEST_CASE("sum: of nothing is 0, mean of nothing an error") {
  const Variable<float> none(Tensor<float>::zeros({0, 2}), true);
  CHECK(infty::sum(none).value().item() == 0);
  CHECK_THROWS_WITH(infty::mean(none), "[mean] x is [0, 2]: it must not be empty");
}
