// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/rms_norm.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::RmsNorm;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("RmsNorm: by hand, with its gradients", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  RmsNorm<T, B> norm(2, 0);
  norm.weight.value().copy_from(Tensor<T, B>::from({2}, {1, 2}));
  const Variable<T, B> x(Tensor<T, B>::from({2, 2}, {1, 7, -5, 5}), true);  // of size 5 each
  infty::Tape tape;
  const auto y = norm.forward(x);
  CHECK(infty::tests::error(y.value().to_vector(), std::vector<double>{.2, 2.8, -1, 2}) < 1e-6);
  tape.backward(y, Tensor<T, B>::from({2, 2}, {1, 0, 0, 1}));
  // dx = r (c - h mean(c h)) with r = 1/5: of (1, 0), h = (.2, 1.4), mean .1.
  CHECK(infty::tests::error(x.grad().to_vector(), std::vector<double>{.196, -.028, .2, .2}) < 1e-6);
  CHECK(infty::tests::error(norm.weight.grad().to_vector(), std::vector<double>{.2, 1}) < 1e-6);
}

TEST_CASE("RmsNorm: gradients are those of differences, and sizes are checked") {
  infty::Random random(3);
  const auto x = infty::tests::uniform_variable<double>({2, 3, 6}, random);
  const auto gain = infty::tests::uniform_variable<double>({6}, random);
  const Variable<double> weight(infty::tests::uniform_tensor<double>({2, 3, 6}, random));
  const auto loss = [&] { return infty::sum(infty::rms_norm(x, gain, .01) * weight); };
  CHECK(infty::gradient_check(loss, std::vector{x, gain}) < 1e-8);
  CHECK_THROWS_AS(RmsNorm<double>(5).forward(x), infty::ShapeError);
  CHECK_THROWS_AS(RmsNorm<double>(0), infty::ValueError);
  CHECK_THROWS_AS(RmsNorm<double>(3, -1), infty::ValueError);
}
