// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/input_norm.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::InputNorm;
using infty::LayerNorm;
using infty::Random;
using infty::Variable;

namespace {

template <class T, class B>
LayerNorm<T, B> drawn_norm(infty::Index d, Random& random) {
  LayerNorm<T, B> norm(d);
  for (auto* parameter : {&norm.weight, &norm.bias})
    fill_uniform(parameter->value(), -1, 1, random);
  return norm;
}

/// A norm of a user's own, without parameters.
struct Halved {
  Variable<double> forward(const Variable<double>& x) const { return infty::scale(x, .5); }
  template <class Visitor>
  void visit(Visitor&&) {}
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("InputNorm: the norm that it refers to, or none", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const auto norm = drawn_norm<T, B>(4, random);
  const auto x = infty::tests::uniform_variable<T, B>({2, 3, 4}, random);
  const InputNorm<T, B> none, some(norm);
  CHECK_FALSE(none);
  CHECK(none(x).identity() == x.identity());
  CHECK(none.with_constants(x).identity() == x.identity());
  CHECK(none.parameters().empty());

  CHECK(some);
  const auto expected = norm.forward(x).value().to_vector();
  CHECK(some(x).value().to_vector() == expected);
  CHECK(some.with_constants(x).value().to_vector() == expected);
  const auto parameters = some.parameters();
  REQUIRE(parameters.size() == 2);
  CHECK(parameters[0].identity() == norm.weight.identity());
  CHECK(parameters[1].identity() == norm.bias.identity());
}

TEST_CASE("InputNorm: gradients go to the vectors, and to the norm unless it is held constant") {
  Random random(infty::tests::seed);
  const auto norm = drawn_norm<double, infty::EigenBackend>(4, random);
  const InputNorm<double> some(norm);
  const auto x = infty::tests::uniform_variable<double>({2, 3, 4}, random);
  using All = std::vector<Variable<double>>;
  CHECK(infty::gradient_check([&] { return infty::sum(some(x) * some(x)); },
                              All{x, norm.weight, norm.bias}) < 1e-7);
  for (auto v : {x, norm.weight, norm.bias}) v.zero_grad();
  const auto constant = [&] {
    const auto y = some.with_constants(x);
    return infty::sum(y * y);
  };
  CHECK(infty::gradient_check(constant, All{x}) < 1e-7);
  CHECK(x.has_grad());
  CHECK_FALSE(norm.weight.has_grad());
  CHECK_FALSE(norm.bias.has_grad());
  CHECK(norm.weight.requires_grad());  // the layer's own is as it was
}

TEST_CASE("InputNorm: refers to any layer that norms") {
  const Halved halved;
  const InputNorm<double> norm(halved);
  const Variable<double> x(infty::Tensor<double>::from({2}, {3, 8}));
  CHECK(norm(x).value().to_vector() == std::vector<double>{1.5, 4});
  CHECK(norm.with_constants(x).value().to_vector() == std::vector<double>{1.5, 4});
  CHECK(norm.parameters().empty());
}
