// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/top_k.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::top_k;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("top_k: the largest first, of equal ones that with the lower index", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from({2, 5}, {3, 1, 3, 2, 3, T(-0.0), 0, -1, T(-1e30), 0}),
                         true);
  infty::Tape tape;
  const auto best = top_k(x, 3);
  CHECK(best.indices.to_vector() == std::vector<Index>{0, 2, 4, 0, 1, 4});
  CHECK(best.values.value().to_vector() == std::vector<T>{3, 3, 3, 0, 0, 0});
  tape.backward(best.values, Tensor<T, B>::from({2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(x.grad().to_vector() == std::vector<T>{1, 0, 2, 0, 3, 4, 5, 0, 0, 6});
}

TEMPLATE_LIST_TEST_CASE("top_k: as a stable sort has it, for every k", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const Index n : {1, 2, 7, 64, 101}) {
    std::vector<T> x;  // few numbers, so that many are equal
    for (Index i = 0; i < 3 * n; ++i) x.push_back(static_cast<T>(random.below(n / 2 + 1)));
    const Variable<T, B> scores(Tensor<T, B>::from({3, n}, x));
    for (Index k = 0; k <= n; k += n > 10 ? 9 : 1) {
      std::vector<Index> expected;
      for (Index row = 0; row < 3; ++row) {
        std::vector<Index> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), Index{0});
        std::sort(order.begin(), order.end(), [&](Index a, Index b) {
          const auto left = x[static_cast<std::size_t>(row * n + a)],
                     right = x[static_cast<std::size_t>(row * n + b)];
          return left != right ? left > right : a < b;
        });
        expected.insert(expected.end(), order.begin(), order.begin() + k);
      }
      CAPTURE(n, k);
      const auto best = top_k(scores, k);
      CHECK(best.values.shape() == Shape{3, k});
      CHECK(best.indices.to_vector() == expected);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("top_k: NaN counts as the largest, infinities as what they are", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T nan = std::numeric_limits<T>::quiet_NaN(), most = std::numeric_limits<T>::infinity();
  const Variable<T, B> x(Tensor<T, B>::from({1, 6}, {-most, nan, 1, most, nan, -most}));
  CHECK(top_k(x, 6).indices.to_vector() == std::vector<Index>{1, 4, 3, 2, 0, 5});
  CHECK(top_k(x, 1).indices.to_vector() == std::vector<Index>{1});
  // In a long row, where numbers are passed over by groups: none is passed over that counts.
  std::vector<T> row(100, T(-1));
  row[3] = row[98] = most;
  row[50] = row[70] = nan;
  row[99] = T(0);
  const Variable<T, B> y(Tensor<T, B>::from({1, 100}, row));
  CHECK(top_k(y, 2).indices.to_vector() == std::vector<Index>{50, 70});
  CHECK(top_k(y, 1).indices.to_vector() == std::vector<Index>{50});
  CHECK(top_k(y, 6).indices.to_vector() == std::vector<Index>{50, 70, 3, 98, 99, 0});
}

TEST_CASE("top_k: gradients against differences") {
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({2, 3, 9}, random);
  const auto loss = [&] {
    const auto values = top_k(x, 4).values;
    return infty::sum(values * values);
  };
  CHECK(infty::gradient_check(loss, std::vector{x}) < 1e-9);
}

TEST_CASE("top_k: sizes that do not fit, and nothing") {
  const Variable<float> x(Tensor<float>::zeros({2, 3})), none(Tensor<float>::zeros({0, 3}));
  CHECK_THROWS_WITH(top_k(x, 4), "[top_k] k is 4, scores are [2, 3]: k must lie in [0, 3]");
  CHECK_THROWS_AS(top_k(x, -1), infty::ValueError);
  CHECK_THROWS_AS(top_k(Variable<float>(Tensor<float>::zeros({})), 1), infty::ShapeError);
  CHECK(top_k(none, 2).values.shape() == Shape{0, 2});
}
