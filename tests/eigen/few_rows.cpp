// SPDX-License-Identifier: MIT
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/eigen/few_rows.hpp>
#include <infty/eigen/gemm.hpp>
#include <infty/eigen/linear_algebra.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace few_rows_tests {

using infty::Index, infty::Random, infty::Shape, infty::Tensor, infty::tests::uniform_tensor;

template <class T>
struct Case {
  Index n, k;
  bool turned;  ///< whether A is stored transposed
  T alpha, beta;
  std::vector<T> a, b, c;
  static constexpr Index rows = 40;

  Case(Index n_, Index k_, bool turned_, T alpha_, T beta_)
      : n(n_), k(k_), turned(turned_), alpha(alpha_), beta(beta_) {
    Random random(infty::tests::seed);
    a = uniform_tensor<T>(Shape{rows * k}, random).to_vector();
    b = uniform_tensor<T>(Shape{n * k}, random).to_vector();
    c = uniform_tensor<T>(Shape{rows * n}, random).to_vector();
  }

  /// Rows [first, first + m) of C.
  std::vector<T> product(Index first, Index m) const {
    std::vector<T> to(c.begin() + first * n, c.begin() + (first + m) * n);
    using Operand = infty::detail::GemmOperand<T>;
    const Operand left{a.data() + (turned ? first : first * k), turned ? rows : k, turned},
        right{b.data(), k, true};
    infty::detail::tiled_gemm(m, n, k, alpha, left, right, beta, to.data(), n);
    return to;
  }
};

}  // namespace few_rows_tests

TEMPLATE_TEST_CASE("few_rows: the bits of a product of many rows", "", float, double) {
  using namespace few_rows_tests;
  using T = TestType;
  for (const Index n : {1, 15, 16, 17, 33, 70})
    for (const Index k : {1, 3, 15, 16, 17, 300, 321, 650, 768})
      for (const bool turned : {false, true})
        for (const auto& [alpha, beta] :
             {std::array<T, 2>{T(1), T(0)}, {T(1), T(1)}, {T(.7), T(0)}, {T(1), T(.3)}}) {
          const Case<T> x(n, k, turned, alpha, beta);
          const auto all = x.product(0, x.rows);
          CAPTURE(n, k, turned, alpha, beta);
          for (Index m = 1, first = 0; m <= infty::detail::most_few_rows; first += m++) {
            const std::vector<T> wanted(all.begin() + first * n, all.begin() + (first + m) * n);
            CHECK(x.product(first, m) == wanted);
          }
        }
}

TEMPLATE_TEST_CASE("few_rows: the sign of a zero is that of a product of many rows", "", float,
                   double) {
  using namespace few_rows_tests;
  using T = TestType;
  for (const Index n : {5, 16, 40, 48, 70}) {
    Case<T> x(n, 20, false, 1, 0);
    x.a.assign(x.a.size(), std::numeric_limits<T>::min());
    x.b.assign(x.b.size(), -std::numeric_limits<T>::min());
    const std::vector<T> all = x.product(0, x.rows);
    for (const Index m : {1, 8, 9}) {
      const std::vector<T> few = x.product(0, m);
      for (std::size_t i = 0; i < few.size(); ++i) {
        CHECK(few[i] == 0);
        CHECK(std::signbit(few[i]) == std::signbit(all[i % static_cast<std::size_t>(n)]));
        CHECK(std::signbit(few[i]) == std::signbit(few[0]));
      }
    }
  }
}

TEMPLATE_TEST_CASE("few_rows: what Eigen multiplies", "", float, double) {
  using namespace few_rows_tests;
  using T = TestType;
  const Case<T> x(35, 400, false, T(.7), T(.3));
  for (Index m = 1; m <= infty::detail::most_few_rows; ++m) {
    std::vector<T> wanted(x.c.begin(), x.c.begin() + m * x.n);
    infty::detail::eigen_gemm<T>(m, x.n, x.k, x.alpha, {x.a.data(), x.k, false},
                                 {x.b.data(), x.k, true}, x.beta, wanted.data(), x.n);
    const auto found = x.product(0, m);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      CHECK(std::abs(found[i] - wanted[i]) <=
            T(400) * std::numeric_limits<T>::epsilon() * (T(1) + std::abs(wanted[i])));
  }
}

TEST_CASE("few_rows: infinity in another row's place of the last columns stays there") {
  using namespace few_rows_tests;
  Case<float> x(17, 321, false, 1, 0);
  x.b[16 * 321 + 320] = std::numeric_limits<float>::infinity();
  const auto y = x.product(0, 3);
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isfinite(y[i]) == (i % 17 != 16));
}

TEST_CASE("matmul_tiles: a few rows leave pieces of weights for many threads") {
  const auto tile = infty::detail::matmul_tiles(1, 768, 768, 1, false, true);
  CHECK(tile.rows == 1);
  CHECK(tile.inner == 768);
  CHECK(tile.cols <= 128);
  CHECK(infty::detail::matmul_tiles(1, 16, 16, 1, false, true).cols == 16);
}

TEST_CASE("matmul_tiles: gradients of narrow weights are cut, and their sums by the sizes alone") {
  using infty::detail::matmul_tiles;
  const auto tile = matmul_tiles(64, 64, 888, 1, true, false, 32);
  CHECK(tile.rows == 64);
  CHECK(tile.cols == 32);
  CHECK(tile.inner == 888);
  infty::Random random(infty::tests::seed);
  for (int i = 0; i < 20'000; ++i) {
    const infty::Index m = 1 + random.below(3000), n = 1 + random.below(300),
                       k = 1 + random.below(9000);
    CAPTURE(m, n, k);
    for (const infty::Index products : {1, 5})
      for (const infty::Index strip : {8, 16, 32})
        REQUIRE(matmul_tiles(m, n, k, products, true, false, strip).inner ==
                matmul_tiles(m, n, k, products, true, false).inner);
  }
}
