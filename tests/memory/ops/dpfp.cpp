// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/dpfp.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
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

TEMPLATE_LIST_TEST_CASE("dpfp: features and gradients as they are defined", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  infty::Random random(infty::tests::seed);
  const Index rows = 5, d = 37, n = 2 * d;
  for (const Index nu : {1, 3, 80}) {
    const auto x = infty::tests::uniform_variable<T, B>({rows, d}, random);
    const auto weight = infty::tests::uniform_variable<T, B>({rows, n * nu}, random).detach();
    infty::Tape tape;
    const auto y = infty::dpfp(x, nu);
    tape.backward(infty::sum(y * weight));
    const auto in = x.value().to_vector(), w = weight.value().to_vector();
    std::vector<double> features(w.size()), gradient(in.size());
    for (Index row = 0; row < rows; ++row) {
      const auto r = [&](Index i) {
        const double value = in[static_cast<std::size_t>(row * d + i % d)];
        return std::max(i < d ? value : -value, 0.);
      };
      const auto add = [&](Index i, double slope) {
        if (r(i) > 0) gradient[static_cast<std::size_t>(row * d + i % d)] += i < d ? slope : -slope;
      };
      for (Index j = 1; j <= nu; ++j)
        for (Index i = 0; i < n; ++i) {
          const Index other = ((i - j) % n + n) % n;
          const auto at = static_cast<std::size_t>((row * nu + j - 1) * n + i);
          features[at] = r(i) * r(other);
          add(i, static_cast<double>(w[at]) * r(other));
          add(other, static_cast<double>(w[at]) * r(i));
        }
    }
    CAPTURE(nu);
    CHECK(infty::tests::error(y.value().to_vector(), features) < infty::tests::tolerance<T>);
    CHECK(infty::tests::error(x.grad().to_vector(), gradient) < infty::tests::tolerance<T>);
  }
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
