// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/network_gradient.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

namespace network_gradient_test {

/// A network of three layers, keys and values [2, 3, ...] and a step for each.
template <class T, class B>
struct Case {
  using V = Variable<T, B>;
  infty::Random random{infty::tests::seed};
  std::vector<V> weights{infty::tests::uniform_variable<T, B>({2, 4, 5}, random),
                         infty::tests::uniform_variable<T, B>({2, 5, 3}, random),
                         infty::tests::uniform_variable<T, B>({2, 3, 2}, random)};
  V x = infty::tests::uniform_variable<T, B>({2, 3, 4}, random),
    y = infty::tests::uniform_variable<T, B>({2, 3, 2}, random),
    step = infty::tests::uniform_variable<T, B>({2, 3, 1}, random, 0, 1);

  /// The loss that the network learns by.
  V loss() const {
    const V error = network(weights, x) - y;
    return sum(multiply(step, error * error), T(0.5));  // mean over two dimensions
  }
};

}  // namespace network_gradient_test

TEMPLATE_LIST_TEST_CASE("network_gradient: what the tape says of the loss", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  network_gradient_test::Case<T, B> c;
  const auto gradient = network_gradient(c.weights, c.x, c.y, c.step);
  infty::Tape tape;
  tape.backward(c.loss());
  REQUIRE(gradient.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(gradient[i].shape() == c.weights[i].shape());
    CHECK(infty::tests::error(gradient[i].value().to_vector(), c.weights[i].grad().to_vector()) <
          infty::tests::tolerance<T>);
  }
}

TEST_CASE("network_gradient: its gradients are those of central differences") {
  network_gradient_test::Case<double, infty::EigenBackend> c;
  const auto function = [&] {
    auto total = sum(Variable<double>(Tensor<double>::zeros(Shape{})));
    double factor = 1;
    for (const auto& gradient : network_gradient(c.weights, c.x, c.y, c.step))
      total = total + sum(gradient * gradient, factor += .5);
    return total;
  };
  auto inputs = c.weights;
  inputs.insert(inputs.end(), {c.x, c.y, c.step});
  CHECK(gradient_check(function, inputs) < 1e-8);
}

TEST_CASE("network_gradient: one network serves all rows") {
  network_gradient_test::Case<double, infty::EigenBackend> c;
  std::vector<Variable<double>> shared, repeated;
  for (const auto& weight : c.weights) {
    const auto one = weight.value().slice(0, 1);
    shared.emplace_back(one.reshape({weight.dim(1), weight.dim(2)}));
    repeated.push_back(add(Variable<double>(Tensor<double>::zeros(weight.shape())), {one}));
  }
  CHECK(network(shared, c.x).value().to_vector() == network(repeated, c.x).value().to_vector());
  const auto a = network_gradient(shared, c.x, c.y, c.step),
             b = network_gradient(repeated, c.x, c.y, c.step);
  for (std::size_t i = 0; i < a.size(); ++i)
    CHECK(infty::tests::error(a[i].value().to_vector(), b[i].value().to_vector()) < 1e-14);
}

TEST_CASE("gelu_slope: the slope of gelu, and its own") {
  Variable<double> x(Tensor<double>::from({5}, std::vector<double>{-7, -1, 0, .5, 9}), true);
  {
    infty::Tape tape;
    tape.backward(sum(gelu(x)));
  }
  CHECK(gelu_slope(x).value().to_vector() == x.grad().to_vector());
  CHECK(gradient_check([&] { return sum(gelu_slope(x)); }, std::vector{x}) < 1e-9);
}

TEMPLATE_LIST_TEST_CASE("shortened: each matrix that is too long is as long as may be", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Lengths 5, 1, 0, and 13 of one element.
  const std::vector<T> numbers{3, 0, 0, 4, T(.6), T(-.8), 0, 0, 0, 0, 0, 0, 0, -13, 0, 0};
  Variable<T, B> x(Tensor<T, B>::from({2, 2, 2, 2}, numbers), true);
  const auto y = infty::shortened(x, 2);
  CHECK(y.shape() == x.shape());
  const std::vector<T> wanted{T(1.2), 0, 0, T(1.6), T(.6), T(-.8), 0, 0, 0, 0, 0, 0, 0, -2, 0, 0};
  CHECK(infty::tests::error(y.value().to_vector(), wanted) < infty::tests::tolerance<T>);
}

TEST_CASE("shortened: its gradients are those of central differences") {
  infty::Random random(infty::tests::seed);
  auto x = infty::tests::uniform_variable<double>({3, 2, 5}, random);
  const auto weights = infty::tests::uniform_variable<double>({3, 2, 5}, random);
  for (const double longest : {.5, 1.5, 1e3}) {
    CAPTURE(longest);
    CHECK(gradient_check([&] { return sum(multiply(infty::shortened(x, longest), weights)); },
                         std::vector{x}) < 1e-8);
  }
}

TEST_CASE("shortened: what cannot be is refused") {
  const Variable<double> x(Tensor<double>::zeros({2, 3}));
  CHECK_THROWS_AS(infty::shortened(x, 0), infty::ValueError);
  CHECK_THROWS_AS(infty::shortened(x, std::nan("")), infty::ValueError);
  CHECK_THROWS_AS(infty::shortened(Variable<double>(Tensor<double>::zeros({3})), 1),
                  infty::ShapeError);
  CHECK_THROWS_AS(infty::shortened(Variable<double>(Tensor<double>::zeros({0, 3})), 1),
                  infty::ShapeError);
}

TEST_CASE("network: what does not fit is refused") {
  network_gradient_test::Case<double, infty::EigenBackend> c;
  const std::vector<Variable<double>> none;
  CHECK_THROWS_AS(network(none, c.x), infty::ShapeError);
  CHECK_THROWS_AS(network_gradient(none, c.x, c.y, c.step), infty::ShapeError);
  CHECK_THROWS_AS(network(c.weights, c.y), infty::ShapeError);
  CHECK_THROWS_AS(network_gradient(c.weights, c.x, c.x, c.step), infty::ShapeError);
}
