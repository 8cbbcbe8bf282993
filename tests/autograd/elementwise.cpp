// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

namespace {

// Central differences with step h = 1e-5 are off by h² f''' / 6, some 1e-11 here, and by the
// rounding of f over h, some 1e-16 * 10 / 1e-5.
constexpr double slope_tolerance = 1e-9;

// The gradient of sum(weights * f(inputs...)) with respect to all inputs, against differences.
template <class F>
double check(F f, std::vector<Variable<double>> inputs) {
  Random random(infty::tests::seed, 1);
  const auto weights = uniform_variable<double>(f().shape(), random).detach();
  return infty::gradient_check([&] { return infty::sum(f() * weights); }, std::move(inputs));
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("elementwise: values by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from({2, 2}, {-2, 0, 1, 3}));
  const Variable<T, B> y(Tensor<T, B>::from({2, 2}, {5, 6, 7, 8}));
  using V = std::vector<T>;
  CHECK(infty::relu(x).value().to_vector() == V{0, 0, 1, 3});
  CHECK(infty::scale(x, T(-2)).value().to_vector() == V{4, 0, -2, -6});
  CHECK(infty::add(x, y).value().to_vector() == V{3, 6, 8, 11});
  CHECK((x + y).value().to_vector() == V{3, 6, 8, 11});
  CHECK(infty::multiply(x, y).value().to_vector() == V{-10, 0, 7, 24});
  CHECK((x * y).value().to_vector() == V{-10, 0, 7, 24});
  const std::vector<double> sigmoids{0.1192029220221176, 0.5, 0.7310585786300049,
                                     0.9525741268224334};
  const std::vector<double> softplus{0.1269280110429725, 0.6931471805599453, 1.3132616875182228,
                                     3.0485873515737421};
  CHECK(infty::tests::error(infty::sigmoid(x).value().to_vector(), sigmoids) <
        infty::tests::tolerance<T>);
  CHECK(infty::tests::error(infty::softplus(x).value().to_vector(), softplus) <
        infty::tests::tolerance<T>);
}

TEST_CASE("elementwise: gradients") {
  Random random(infty::tests::seed);
  const auto x = uniform_variable<double>({3, 7}, random, -4, 4);
  const auto y = uniform_variable<double>({3, 7}, random, -4, 4);
  CHECK(check([&] { return infty::sigmoid(x); }, {x}) < slope_tolerance);
  CHECK(check([&] { return infty::softplus(x); }, {x}) < slope_tolerance);
  CHECK(check([&] { return infty::relu(x); }, {x}) < slope_tolerance);
  CHECK(check([&] { return infty::scale(x, -2.5); }, {x}) < slope_tolerance);
  CHECK(check([&] { return infty::add(x, y); }, {x, y}) < slope_tolerance);
  CHECK(check([&] { return infty::multiply(x, y); }, {x, y}) < slope_tolerance);
}

TEST_CASE("elementwise: gradients where one input is a constant, or both are the same") {
  Random random(infty::tests::seed);
  const auto x = uniform_variable<double>({5}, random), c = uniform_variable<double>({5}, random);
  const auto constant = c.detach();
  CHECK(check([&] { return x * constant; }, {x}) < slope_tolerance);
  CHECK(check([&] { return constant * x; }, {x}) < slope_tolerance);
  CHECK(check([&] { return constant + x; }, {x}) < slope_tolerance);
  CHECK(check([&] { return x + x * x; }, {x}) < slope_tolerance);
  CHECK_FALSE(constant.has_grad());
}

TEST_CASE("relu: the gradient at 0 is 0") {
  const Variable<double> x(Tensor<double>::from({3}, {-1, 0, 1}), true);
  infty::Tape tape;
  tape.backward(infty::sum(infty::relu(x)));
  CHECK(x.grad().to_vector() == std::vector<double>{0, 0, 1});
}

TEMPLATE_LIST_TEST_CASE("elementwise: far from 0 nothing overflows, forward or backward", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from({2}, {T(-1e30), T(1e30)}), true);
  using V = std::vector<T>;
  infty::Tape tape;
  const auto s = infty::sigmoid(x), p = infty::softplus(x);
  CHECK(s.value().to_vector() == V{0, 1});
  CHECK(p.value().to_vector() == V{0, T(1e30)});
  tape.backward(infty::sum(s + p));
  CHECK(x.grad().to_vector() == V{0, 1});
}

TEMPLATE_LIST_TEST_CASE("operators with numbers: values by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = std::vector<T>;
  const Variable<T, B> x(Tensor<T, B>::from({3}, {-2, 0, 5}));
  CHECK((x + 1).value().to_vector() == V{-1, 1, 6});
  CHECK((1 + x).value().to_vector() == V{-1, 1, 6});
  CHECK((x - 1).value().to_vector() == V{-3, -1, 4});
  CHECK((1 - x).value().to_vector() == V{3, 1, -4});
  CHECK((-x).value().to_vector() == V{2, 0, -5});
  CHECK((x * 3).value().to_vector() == V{-6, 0, 15});
  CHECK((3 * x).value().to_vector() == V{-6, 0, 15});
  CHECK((x / 3).value().to_vector() == V{T(-2) / T(3), 0, T(5) / T(3)});
  CHECK((x - x).value().to_vector() == V{0, 0, 0});
}

TEST_CASE("operators with numbers: gradients, for which no value is kept") {
  Random random(infty::tests::seed);
  auto x = uniform_variable<double>({3, 7}, random, -4, 4);
  const auto y = uniform_variable<double>({3, 7}, random, -4, 4);
  CHECK(check([&] { return x + 2; }, {x}) < slope_tolerance);
  CHECK(check([&] { return 2 + x; }, {x}) < slope_tolerance);
  CHECK(check([&] { return x - 2; }, {x}) < slope_tolerance);
  CHECK(check([&] { return 2 - x; }, {x}) < slope_tolerance);
  CHECK(check([&] { return -x; }, {x}) < slope_tolerance);
  CHECK(check([&] { return 2.5 * x; }, {x}) < slope_tolerance);
  CHECK(check([&] { return x / 2.5; }, {x}) < slope_tolerance);
  CHECK(check([&] { return x - y; }, {x, y}) < slope_tolerance);
  x.zero_grad();
  infty::Tape tape;
  const auto total = infty::sum(3 * x + 1);
  x.value().fill(0);
  tape.backward(total);
  CHECK(x.grad().to_vector() == std::vector<double>(21, 3));
}

TEMPLATE_LIST_TEST_CASE("exp, tanh: values, and far from 0", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from({4}, {-2, 0, 1, T(-1e30)}));
  const std::vector<double> powers{0.1353352832366127, 1, 2.718281828459045, 0},
      tangents{-0.9640275800758169, 0, 0.7615941559557649, -1};
  CHECK(infty::tests::error(infty::exp(x).value().to_vector(), powers) <
        infty::tests::tolerance<T>);
  CHECK(infty::tests::error(infty::tanh(x).value().to_vector(), tangents) <
        infty::tests::tolerance<T>);
}

TEST_CASE("exp, tanh: gradients") {
  Random random(infty::tests::seed);
  const auto x = uniform_variable<double>({3, 7}, random, -2, 2);
  CHECK(check([&] { return infty::exp(x); }, {x}) < slope_tolerance);
  CHECK(check([&] { return infty::tanh(x); }, {x}) < slope_tolerance);
}

TEST_CASE("elementwise: empty tensors pass through") {
  const Variable<float> x(Tensor<float>::zeros({0, 3}), true);
  infty::Tape tape;
  const auto y = infty::sigmoid(x) + x;
  CHECK(y.shape() == Shape{0, 3});
  tape.backward(infty::sum(y));
  CHECK(x.grad().size() == 0);
}

TEMPLATE_LIST_TEST_CASE("elementwise: x / s has a gradient where 1 / s is no number", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  constexpr T small = (std::numeric_limits<T>::min)();
  const Variable<T, B> x(Tensor<T, B>::from({3}, {0, small, -small}), true);
  infty::Tape tape;
  const auto y = x / (small / 4);
  CHECK(y.value().to_vector() == std::vector<T>{0, 4, -4});
  tape.backward(y, Tensor<T, B>::from({3}, {0, small, -2 * small}));
  CHECK(x.grad().to_vector() == std::vector<T>{0, 4, -8});
}
