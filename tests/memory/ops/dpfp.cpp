// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/dpfp.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("dpfp: by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from({1, 2, 2}, {2, -3, 0, 5}));
  // r is 2 0 0 3 and 0 5 0 0; turned by 1 3 2 0 0, by 2 0 3 2 0, by 3 0 0 3 2, by 4 itself.
  const std::vector<T> expected{6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 4, 0,  0, 9, 6, 0, 0, 0,
                                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0, 0, 0, 0, 0, 0};
  const auto y = infty::dpfp(x, 5);
  CHECK(y.shape() == Shape{1, 2, 20});
  CHECK(y.value().to_vector() == expected);
}

TEST_CASE("dpfp: gradient, and what does not fit") {
  infty::Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({2, 3, 3}, random);
  const infty::Index nu = GENERATE(1, 3, 6, 7);
  const auto weight = infty::tests::uniform_variable<double>({2, 3, 6 * nu}, random).detach();
  CHECK(infty::gradient_check(
            [&] { return infty::sum(infty::dpfp(x, nu) * weight) + infty::sum(infty::dpfp(x, 1)); },
            std::vector{x}) < 1e-9);
  CHECK_THROWS_WITH(infty::dpfp(x, 0), "[dpfp] nu is 0: it must be >= 1");
  CHECK_THROWS_AS(infty::dpfp(x, infty::largest_size), infty::ValueError);
  CHECK_THROWS_AS(infty::dpfp(Variable<double>(Tensor<double>(Shape{})), 1), infty::ShapeError);
}
