// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/faded_sum.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

TEMPLATE_LIST_TEST_CASE("faded_sum: what multiply and add make, and their gradients", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = infty::Variable<T, B>;
  infty::Random random(infty::tests::seed);
  std::vector<V> inputs{infty::tests::uniform_variable<T, B>({2, 3, 1, 1}, random),
                        infty::tests::uniform_variable<T, B>({2, 3, 4, 5}, random),
                        infty::tests::uniform_variable<T, B>({2, 3, 4, 5}, random)};
  const auto gradients = [&](const auto& function) {
    for (V& input : inputs) input.zero_grad();
    infty::Tape tape;
    const V y = function();
    tape.backward(sum(y * y * inputs[1]));  // a gradient has arrived at x before
    std::vector<std::vector<T>> all{y.value().to_vector()};
    for (const V& input : inputs) all.push_back(input.grad().to_vector());
    return all;
  };
  const auto fused = gradients([&] { return faded_sum(inputs[0], inputs[1], inputs[2], T(-2)); });
  const auto plain =
      gradients([&] { return multiply(inputs[0], inputs[1]) - scale(inputs[2], T(2)); });
  for (std::size_t i = 0; i < fused.size(); ++i) {
    CAPTURE(i);
    CHECK(infty::tests::error(fused[i], plain[i]) < infty::tests::tolerance<T>);
  }
}

TEST_CASE("faded_sum: its gradients are those of central differences") {
  infty::Random random(infty::tests::seed);
  const auto f = infty::tests::uniform_variable<double>({2, 1, 1}, random),
             x = infty::tests::uniform_variable<double>({2, 4, 3}, random),
             y = infty::tests::uniform_variable<double>({2, 4, 3}, random);
  const auto loss = [&] {
    const auto sums = faded_sum(f, x, y, -1.5);
    return sum(sums * sums);
  };
  CHECK(gradient_check(loss, std::vector{f, x, y}) < 1e-8);
  CHECK_THROWS_AS(faded_sum(f, x, f), infty::ShapeError);
  CHECK_THROWS_AS(faded_sum(x, x, y), infty::ShapeError);
}
