// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/eigen/cholesky.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::uniform_tensor;
using infty::tests::with_threads;

namespace cholesky_tests {

constexpr Index block = infty::detail::cholesky_block;

/// Symmetric, and so large on the diagonal that it is positive definite.
template <class T>
Tensor<T> dominant(Index n, Random& random) {
  auto a = uniform_tensor<T>(Shape{n, n}, random);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < i; ++j) a.data()[j * n + i] = a.data()[i * n + j];
    a.data()[i * n + i] = static_cast<T>(n);
  }
  return a;
}

template <class T>
bool solve(Index n, Index m, Tensor<T>& a, Tensor<T>& b) {
  return infty::detail::cholesky_solve(n, m, a.data(), b.data());
}

}  // namespace cholesky_tests

TEMPLATE_TEST_CASE("cholesky_solve: A X is B again, at and about the sizes of blocks", "", float,
                   double) {
  using namespace cholesky_tests;
  Random random(infty::tests::seed);
  for (const Index n : {block - 1, block, block + 1, 2 * block, 2 * block + 31})
    for (const Index m : {1, 63, 64, 130}) {
      const auto a = dominant<TestType>(n, random), b = uniform_tensor<TestType>({n, m}, random);
      auto factor = a.clone(), x = b.clone();
      REQUIRE(solve(n, m, factor, x));
      double worst = 0;
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < m; ++j) {
          double sum = -static_cast<double>(b.data()[i * m + j]);
          for (Index k = 0; k < n; ++k)
            sum +=
                static_cast<double>(a.data()[i * n + k]) * static_cast<double>(x.data()[k * m + j]);
          worst = std::max(worst, std::abs(sum));
        }
      CAPTURE(n, m);
      CHECK(worst < 4 * static_cast<double>(n) * std::numeric_limits<TestType>::epsilon());
    }
}

TEMPLATE_TEST_CASE("cholesky_solve: the same bits with one thread and with more", "", float,
                   double) {
  using namespace cholesky_tests;
  const Index n = 300, m = 200;
  const auto solved = [&](int threads) {
    Random random(infty::tests::seed);
    auto a = dominant<TestType>(n, random), b = uniform_tensor<TestType>(Shape{n, m}, random);
    CHECK(with_threads(threads, [&] { return solve(n, m, a, b); }));
    return b.to_vector();
  };
  const auto one = solved(1);
  CHECK(solved(2) == one);
  CHECK(solved(5) == one);
}

TEST_CASE("cholesky_solve: says no, whatever place of the lower triangle spoils it") {
  using namespace cholesky_tests;
  const Index n = 2 * block + 5;
  Random random(infty::tests::seed);
  const auto good = dominant<double>(n, random);
  const auto solvable = [&](Index row, Index column, double number) {
    auto a = good.clone(), b = Tensor<double>::full({n, 3}, 1);
    a.data()[row * n + column] = number;
    return solve(n, 3, a, b);
  };
  REQUIRE(solvable(0, 0, static_cast<double>(n)));
  for (const Index row : {Index{0}, Index{3}, block - 1, block, 2 * block, n - 1})
    for (const Index column : {Index{0}, Index{2}, block - 1, block, 2 * block, n - 1}) {
      if (column > row) continue;
      CAPTURE(row, column);
      for (const double number : {infty::math::not_a_number<double>, infty::math::infinity<double>})
        CHECK_FALSE(solvable(row, column, number));
      CHECK_FALSE(solvable(row, column, row == column ? -1. : 10. * static_cast<double>(n)));
    }
}
