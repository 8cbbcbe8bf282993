// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/core/random.hpp>
#include <infty/signal/expectation.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/power_basis.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "signal/golden.hpp"
#include "support/catch.hpp"
#include "support/types.hpp"

using namespace infty;
using namespace infty::tests;
using Catch::Matchers::Contains;

TEMPLATE_LIST_TEST_CASE("evaluate: psi_j(t_i) at every place", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const GaussianBasis<T> psi(6, {0.05, 0.3});
  const auto t = Tensor<T, B>::from({2, 2}, {T(0), T(0.25), T(0.5), T(1)});
  const auto F = evaluate(psi, t);
  REQUIRE(F.shape() == Shape{2, 2, 6});
  const auto at = t.to_vector(), values = F.to_vector();
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 6; ++j)
      CHECK(values[static_cast<std::size_t>(6 * i + j)] ==
            Approx(psi(j, at[static_cast<std::size_t>(i)])).epsilon(tolerance<T>));
}

TEMPLATE_LIST_TEST_CASE("expectation: E[psi_j] of every density", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const GaussianBasis<T> psi(4, {0.05, 0.3});
  const auto mu = Tensor<T, B>::from({3, 1}, {T(0), T(0.4), T(1)});
  const auto var = Tensor<T, B>::from({3, 1}, {T(0.001), T(0.1), T(1)});
  const auto gaussian = expectation(GaussianDensity{}, psi, mu, var);
  const auto parabola = expectation(TruncatedParabola{}, psi, mu, var);
  REQUIRE(gaussian.shape() == Shape{3, 1, 4});
  REQUIRE(parabola.shape() == Shape{3, 1, 4});
  const auto m = mu.to_vector(), v = var.to_vector();
  const auto g = gaussian.to_vector(), p = parabola.to_vector();
  for (std::size_t i = 0; i < 12; ++i) {
    const auto j = static_cast<Index>(i % 4);
    CHECK(g[i] ==
          Approx(GaussianDensity::expectation(psi, j, m[i / 4], v[i / 4])).epsilon(tolerance<T>));
    CHECK(p[i] ==
          Approx(TruncatedParabola::expectation(psi, j, m[i / 4], v[i / 4])).epsilon(tolerance<T>));
  }
}

TEMPLATE_LIST_TEST_CASE("expectation: every mean of the constant 1 is 1", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const PowerBasis<T> psi(1);
  const auto one = expectation(TruncatedParabola{}, psi, Tensor<T, B>::full({5}, T(0.3)),
                               Tensor<T, B>::full({5}, T(0.01)));
  for (const T value : one.to_vector()) CHECK(value == Approx(1).epsilon(tolerance<T>));
}

TEST_CASE("evaluate: the recorded bases and samplings") {
  for (const std::string& name : ltm_cases) {
    const LtmCase golden(name);
    CAPTURE(name);
    const auto psi = golden.basis<double>();
    const auto centre = golden.file.read<double>("basis.mu");
    const auto width = golden.file.read<double>("basis.sigma");
    REQUIRE(static_cast<std::size_t>(psi.size()) == centre.size());
    for (Index j = 0; j < psi.size(); ++j) {
      CHECK(psi.centre(j) == Approx(centre[static_cast<std::size_t>(j)]).epsilon(1e-15));
      CHECK(psi.width(j) == Approx(width[static_cast<std::size_t>(j)]).epsilon(1e-15));
    }
    const Index samples = golden.count("samples");
    std::vector<double> t;
    for (Index m = 1; m <= samples; ++m)
      t.push_back(static_cast<double>(m) / static_cast<double>(samples));
    const auto F = evaluate(psi, Tensor<double>::from({samples}, t));
    CHECK(relative_error(F.to_vector(), golden.file.read<double>("resample.psi")) <= 1e-12);
  }
}

TEST_CASE("evaluate and expectation: refuse shapes that do not fit") {
  const GaussianBasis<double> psi(2, {0.1});
  const auto high = Tensor<double>::zeros({1, 1, 1, 1, 1, 1});
  CHECK_THROWS_AS(evaluate(psi, high), ShapeError);
  CHECK_THROWS_AS(expectation(GaussianDensity{}, psi, high, high), ShapeError);
  CHECK_THROWS_WITH(expectation(GaussianDensity{}, psi, Tensor<double>::zeros({2, 3}),
                                Tensor<double>::zeros({3, 2})),
                    Contains("[expectation] mu is [2, 3], var is [3, 2]"));
}
