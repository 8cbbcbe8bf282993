// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/signal/contraction.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/power_basis.hpp>
#include <infty/signal/ridge.hpp>

#include "signal/golden.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using namespace infty;
using namespace infty::tests;
using Catch::Matchers::Contains;

TEMPLATE_LIST_TEST_CASE("ridge_matrix: the recorded first and later matrices", "", Types) {
  using B = typename TestType::B;
  for (const std::string& name : ltm_cases) {
    const LtmCase golden(name);
    CAPTURE(name);
    const auto psi = golden.basis<double>();
    const Index length = golden.count("length"), samples = golden.count("samples");
    const double penalty = golden.number("ridge");
    const auto first = ridge_matrix<B>(psi, first_positions(length), penalty);
    CHECK(relative_error(first.to_vector(), golden.file.read<double>("ridge.first")) <= 1e-11);
    const auto next =
        ridge_matrix<B>(psi, next_positions(length, samples, golden.number("tau")), penalty);
    REQUIRE(next.shape() == Shape{samples + length, psi.size()});
    CHECK(relative_error(next.to_vector(), golden.file.read<double>("ridge.next")) <= 1e-11);
  }
}

TEMPLATE_LIST_TEST_CASE("ridge_matrix: one constant function done by hand", "", Types) {
  using B = typename TestType::B;
  // F is a row of 1s over five positions, F Fᵀ + λ is 5 + 3.
  const Positions positions{{0.2, 0.8}, {-0.5}, {1.2, 1.4}};
  const auto G = ridge_matrix<B>(PowerBasis<double>(1), positions, 3.0).to_vector();
  REQUIRE(G.size() == 2);
  CHECK(G[0] == Approx(1.0 / 8).epsilon(1e-15));
  CHECK(G[1] == Approx(1.0 / 8).epsilon(1e-15));
}

TEMPLATE_LIST_TEST_CASE("ridge_matrix: solves its equation for odd lengths and few functions", "",
                        Types) {
  using B = typename TestType::B;
  for (const Index length : {1, 2, 3, 7, 31})
    for (const Index n : {1, 2, 5, 40}) {
      const GaussianBasis<double> psi(n, {0.1});
      const double penalty = 0.5;
      for (const auto& positions : {first_positions(length), next_positions(length, 9, 0.7)}) {
        const auto G = ridge_matrix<B>(psi, positions, penalty).to_vector();  // [inside, n]
        std::vector<double> all = positions.inside;
        all.insert(all.end(), positions.before.begin(), positions.before.end());
        all.insert(all.end(), positions.after.begin(), positions.after.end());
        double worst = 0, scale = 1;
        for (Index i = 0; i < static_cast<Index>(positions.inside.size()); ++i)
          for (Index j = 0; j < n; ++j) {
            double left = penalty * G[static_cast<std::size_t>(i * n + j)];
            for (Index k = 0; k < n; ++k) {
              double entry = 0;
              for (const double t : all) entry += psi(j, t) * psi(k, t);
              left += entry * G[static_cast<std::size_t>(i * n + k)];
            }
            const double right = psi(j, positions.inside[static_cast<std::size_t>(i)]);
            worst = std::max(worst, std::abs(left - right));
            scale = std::max(scale, std::abs(right));
          }
        CAPTURE(length, n);
        CHECK(worst <= 1e-12 * scale);
      }
    }
}

TEST_CASE("ridge_matrix: lambda shrinks B") {
  Random random(seed);
  const GaussianBasis<double> psi(16, {0.05, 0.2});
  const auto X = uniform_tensor<double>({1, 24, 5}, random);
  double before = std::numeric_limits<double>::infinity();
  for (double penalty = 1e-3; penalty < 1e6; penalty *= 3) {
    double norm = 0;
    for (const double b :
         fit(ridge_matrix<EigenBackend>(psi, first_positions(24), penalty), X).to_vector())
      norm += b * b;
    CHECK(norm < before);
    before = norm;
  }
  CHECK(before < 1e-6);
}

TEST_CASE("ridge_matrix: float functions are still fitted in double") {
  const GaussianBasis<float> psi(12, {0.0625, 0.25});  // widths without rounding
  const GaussianBasis<double> exact(12, {0.0625, 0.25});
  const auto got = ridge_matrix<EigenBackend>(psi, first_positions(9), 1.0);
  const auto want = ridge_matrix<EigenBackend>(exact, first_positions(9), 1.0);
  CHECK(relative_error(got.to_vector(), want.to_vector()) == 0);
}

TEST_CASE("ridge_matrix: more positions than are held at once") {
  // 30,000 positions in pieces give what the integral gives: F Fᵀ / L -> the Gram matrix.
  const PowerBasis<double> psi(2);
  const Index length = 15000;
  const auto A = infty::detail::normal_matrix<EigenBackend>(psi, first_positions(length), 1e-9);
  // Over [-1/2, 3/2]: integrals of 1, t, t^2.
  const auto a = A.to_vector();
  CHECK(a[0] / static_cast<double>(length) == Approx(2).epsilon(1e-7));
  CHECK(a[1] / static_cast<double>(length) == Approx(1).epsilon(1e-7));
  CHECK(a[3] / static_cast<double>(length) == Approx(3.5 / 3).epsilon(1e-7));
}

TEMPLATE_LIST_TEST_CASE("condition_number: done by hand", "", Types) {
  using B = typename TestType::B;
  // One function: a number has condition 1.
  CHECK(condition_number<B>(PowerBasis<double>(1), first_positions(4), 2.0) ==
        Approx(1).epsilon(1e-14));
  // 1 and t at -1 and 1: F Fᵀ = 2 I.
  CHECK(condition_number<B>(PowerBasis<double>(2), {{-1, 1}, {}, {}}, 0.5) ==
        Approx(1).epsilon(1e-14));
  // 1 and t at 0 and 1: [[2 + λ, 1], [1, 1 + λ]] with eigenvalues (3 +- sqrt 5) / 2 + λ.
  const double root = std::sqrt(5.0);
  CHECK(condition_number<B>(PowerBasis<double>(2), {{0, 1}, {}, {}}, 0.25) ==
        Approx(((3 + root) / 2 + 0.25) / ((3 - root) / 2 + 0.25)).epsilon(1e-12));
  // More functions than positions: the smallest eigenvalue is λ itself, many times.
  const GaussianBasis<double> psi(30, {0.1});
  const Positions one{{0.4}, {}, {}};
  double squares = 0;
  for (Index j = 0; j < 30; ++j) squares += psi(j, 0.4) * psi(j, 0.4);
  CHECK(condition_number<B>(psi, one, 0.01) == Approx((squares + 0.01) / 0.01).epsilon(1e-10));
}

TEMPLATE_LIST_TEST_CASE("condition_number: of matrices as large and as small as numbers are", "",
                        Types) {
  using B = typename TestType::B;
  // F Fᵀ is [[2, 1], [1, 1]] times a square, and λ as much as it is.
  const auto scaled = [](double size) {
    const GaussianBasis<double> psi(2, {size});
    return condition_number<B>(psi, {{0, 1}, {}, {}}, psi(0, 0) * psi(0, 0));
  };
  const double expected = scaled(1e-10);
  for (const double size : {1e-150, 1e-100, 1e-80}) CHECK(scaled(size) == Approx(expected));
  for (const double penalty : {1e150, 1e160, 1e300, 1.7e308})
    CHECK(condition_number<B>(GaussianBasis<double>(8, {.1}), first_positions(4), penalty) ==
          Approx(1));
}

TEST_CASE("condition_number: a larger penalty never makes it worse") {
  const GaussianBasis<double> psi(20, {0.02, 0.3});
  double before = std::numeric_limits<double>::infinity();
  for (double penalty = 1e-4; penalty < 1e5; penalty *= 10) {
    const double now = condition_number<EigenBackend>(psi, first_positions(32), penalty);
    CHECK(now >= 1);
    CHECK(now < before);
    before = now;
  }
}

TEST_CASE("ridge_matrix: refuses bad penalties and empty positions") {
  const GaussianBasis<double> psi(4, {0.1});
  const auto positions = first_positions(4);
  for (const double penalty : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_WITH(ridge_matrix<EigenBackend>(psi, positions, penalty),
                      Contains("[ridge_matrix] penalty is"));
    CHECK_THROWS_AS(condition_number<EigenBackend>(psi, positions, penalty), ValueError);
  }
  CHECK_THROWS_WITH(ridge_matrix<EigenBackend>(psi, {{}, {-0.1}, {1.1}}, 1.0),
                    Contains("no position inside"));
  // 3^399, squared, is no number, whatever the penalty; nor is what a place that is none gives.
  CHECK_THROWS_WITH(ridge_matrix<EigenBackend>(PowerBasis<double>(400), {{3}, {}, {}}, 1e300),
                    Contains("[ridge_matrix] F Fᵀ + λI is not finite"));
  CHECK_THROWS_WITH(condition_number<EigenBackend>(psi, {{std::nan("")}, {}, {}}, 1.0),
                    Contains("F Fᵀ + λI is not finite"));
  // Equal functions: without a penalty that double can see, nothing tells them apart.
  CHECK_THROWS_WITH(
      ridge_matrix<EigenBackend>(GaussianBasis<double>(4, {0.1, 0.1}), positions, 1e-300),
      Contains("the penalty is too small"));
}
