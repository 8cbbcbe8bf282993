// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/unit_length.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace unit_length_tests {

using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("unit_length: vectors over their length, and zeros as they are", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from({3, 2}, {3, -4, 0, 0, T(1e-3), 0}), true);
  infty::Tape tape;
  const auto y = unit_length(x);
  CHECK(infty::tests::error(y.value().to_vector(), std::vector<T>{T(.6), T(-.8), 0, 0, 1, 0}) <
        infty::tests::tolerance<T>);
  // The first by hand: (dy - y (y dy)) / 5 for dy = (1, 0), which is (1 - .36, .48) / 5.
  tape.backward(y, Tensor<T, B>::from({3, 2}, {1, 0, 0, 0, 1, 0}));
  CHECK(infty::tests::error(x.grad().to_vector(), std::vector<T>{T(.128), T(.096), 0, 0, 0, 0}) <
        infty::tests::tolerance<T>);
}

TEST_CASE("unit_length: gradients are those of central differences, of short vectors too") {
  infty::Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({4, 5}, random),
             weight = infty::tests::uniform_variable<double>({4, 5}, random);
  CHECK(gradient_check([&] { return sum(unit_length(x) * weight); }, std::vector{x}) < 1e-8);
  CHECK(gradient_check([&] { return sum(unit_length(x, 10.) * weight); }, std::vector{x}) < 1e-8);
  CHECK_THROWS_AS(unit_length(Variable<double>(Tensor<double>::zeros({}))), infty::ShapeError);
}

}  // namespace unit_length_tests
