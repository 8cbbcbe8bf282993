// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/unit_vectors.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Tensor;
using infty::unit_vectors;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("unit_vectors: groups of the last dimension, zeros stay", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from({2, 4}, {3, 4, 0, 0, 0, -2, 1, 0}), true);
  infty::Tape tape;
  const auto y = unit_vectors(x, 2);
  CHECK(infty::tests::error(y.value().to_vector(), std::vector<double>{.6, .8, 0, 0, 0, -1, 1, 0}) <
        1e-6);
  // Across a vector the gradient is divided by its length, along it there is none.
  tape.backward(y, Tensor<T, B>::from({2, 4}, {4, -3, 0, 0, 5, 1, 7, 1}));
  CHECK(infty::tests::error(x.grad().to_vector(),
                            std::vector<double>{.8, -.6, 0, 0, 2.5, 0, 0, 1}) < 1e-6);
  // Under the root: 3 4 0 of length 5 becomes 3 4 0 / 13.
  const auto inside = unit_vectors(x, 2, 144, 0);
  CHECK(static_cast<double>(inside.value().to_vector()[0]) == Approx(3. / 13));
}

TEST_CASE("unit_vectors: gradients are those of differences") {
  infty::Random random(3);
  const auto x = infty::tests::uniform_variable<double>({2, 3, 6}, random);
  const Variable<double> weight(infty::tests::uniform_tensor<double>({2, 3, 6}, random));
  for (const auto& [epsilon, floor] :
       {std::pair{0., 1e-12}, std::pair{.3, 0.}, std::pair{0., .8}}) {
    const auto loss = [&, e = epsilon, f = floor] {
      return infty::sum(unit_vectors(x, 3, e, f) * weight);
    };
    CHECK(infty::gradient_check(loss, std::vector{x}) < 1e-8);
  }
}

TEST_CASE("unit_vectors: what does not fit is refused") {
  const Variable<float> x(Tensor<float>::zeros({2, 6}));
  CHECK_THROWS_AS(unit_vectors(x, 4), infty::ShapeError);
  CHECK(unit_vectors(x, 0).value().to_vector() == unit_vectors(x, 6).value().to_vector());
  CHECK_THROWS_AS(unit_vectors(x, -1), infty::ShapeError);
  CHECK_THROWS_AS(unit_vectors(Variable<float>(Tensor<float>::zeros({}))), infty::ShapeError);
  CHECK_THROWS_AS(unit_vectors(x, 3, 0, 0), infty::ValueError);
  CHECK_THROWS_AS(unit_vectors(x, 3, 0, 1e-39), infty::ValueError);  // 1 / floor is infinite
  CHECK(unit_vectors(x, 3, 1e-39, 0).value().to_vector() == x.value().to_vector());
  CHECK_THROWS_AS(unit_vectors(x, 3, -1, 2), infty::ValueError);
  CHECK_THROWS_AS(unit_vectors(x, 3, infty::math::infinity<double>), infty::ValueError);
}
