// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/memory/ops/reconstruction.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("squared_error: over the vectors that a row has", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> a(Tensor<T, B>::from({2, 2, 1}, {1, 2, 3, 4}));
  const auto b = Tensor<T, B>::from({2, 2, 1}, {0, 0, 0, 1});
  CHECK(infty::detail::squared_error(a, b, {2, 1}, T(0.5)).value().item() == T(7));
}

TEST_CASE("squared_error: gradient") {
  Random random(infty::tests::seed);
  const auto a = infty::tests::uniform_variable<double>({2, 3, 2}, random);
  const auto b = infty::tests::uniform_tensor<double>({2, 3, 2}, random);
  const auto loss = [&] { return infty::detail::squared_error(a, b, {3, 2}, 0.7); };
  CHECK(infty::gradient_check(loss, std::vector{a}) < 1e-8);
}
