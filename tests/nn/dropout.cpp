// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/nn/dropout.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::Random;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("dropout: zero or scaled, about as often as asked for", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const Variable<T, B> x(Tensor<T, B>::full({100, 100}, T(3)));
  const auto y = infty::dropout(x, 0.25, random).value().to_vector();
  int zeros = 0;
  for (const T v : y) {
    if (v == 0)
      ++zeros;
    else
      CHECK(v == Approx(4));
  }
  // 10,000 draws with deviation 43; 4 of them.
  CHECK(std::abs(zeros - 2500) < 173);
  CHECK(random.counter() == 10000);
}

TEST_CASE("dropout: probability 0 is the input itself and draws nothing") {
  Random random(infty::tests::seed);
  const Variable<float> x(Tensor<float>::full({3}, 1.0f));
  CHECK(same(infty::dropout(x, 0, random), x));
  CHECK(random.counter() == 0);
}

TEST_CASE("dropout: the gradient passes where the value did") {
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({5, 7}, random);
  const auto loss = [&] {
    Random draws(3);  // the same each time
    const auto y = infty::dropout(x, 0.4, draws);
    return infty::sum(y * y);
  };
  CHECK(infty::gradient_check(loss, std::vector{x}) < 1e-8);
}

TEST_CASE("dropout: the same elements with one thread and with two, others at the next call") {
  const auto drop = [] {
    Random random(infty::tests::seed);
    const Variable<float> x(Tensor<float>::full({30000}, 1.0f));
    auto first = infty::dropout(x, 0.5, random).value().to_vector();
    const auto second = infty::dropout(x, 0.5, random).value().to_vector();
    CHECK(first != second);
    return first;
  };
  CHECK(infty::tests::with_threads(1, drop) == infty::tests::with_threads(2, drop));
}

TEST_CASE("dropout: probabilities out of range") {
  Random random(1);
  const Variable<float> x(Tensor<float>::zeros({2}));
  CHECK_THROWS_WITH(infty::dropout(x, 1.0, random),
                    "[dropout] probability is 1: it must lie in [0, 1)");
  CHECK_THROWS_AS(infty::dropout(x, -0.1, random), infty::ValueError);
  CHECK_THROWS_AS(infty::dropout(x, std::numeric_limits<double>::quiet_NaN(), random),
                  infty::ValueError);
  CHECK(random.counter() == 0);
}
