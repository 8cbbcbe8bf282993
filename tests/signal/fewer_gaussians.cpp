// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <infty/signal/fewer_gaussians.hpp>
#include <infty/signal/gaussian_basis.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::GaussianBasis;
using infty::Index;
using infty::Random;

namespace {

/// The most by which E_p[psi_j] of functions and of their sums differ, over the largest that it can
/// be for such a variance; p = N(mu, var), or psi_j(mu) where var is 0.
template <class T, class B>
double difference(const GaussianBasis<T>& psi, const infty::FewerGaussians<T, B>& fewer, Index i,
                  double mu, double var) {
  const auto exact = psi.template cast<double>(), phi = fewer.functions.template cast<double>();
  const auto weights = fewer.weights.to_vector();
  const Index n = psi.size() / psi.widths();
  const double peak = 1 / std::sqrt(2 * 3.141592653589793 * (std::pow(exact.width(i), 2) + var));
  double most = 0;
  for (Index j = 0; j < n; ++j) {
    double sum = 0;
    for (Index k = 0; k < phi.size(); ++k)
      sum += static_cast<double>(weights[static_cast<std::size_t>(k * n + j)]) *
             phi.gaussian_expectation(k, mu, var).value;
    const double want = exact.gaussian_expectation(j * psi.widths() + i, mu, var).value;
    most = std::max(most, std::fabs(sum - want) / peak);
  }
  return most;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("fewer_gaussians: functions and their expectations are sums of them", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const double tolerance =
      std::max(1.0 * static_cast<double>(std::numeric_limits<T>::epsilon()), 3e-15);
  Random random(infty::tests::seed);
  for (int round = 0; round < 10; ++round) {
    std::vector<double> widths;
    for (Index i = 1 + random.below(3); i > 0; --i)
      widths.push_back(.03 * std::exp(4 * random.uniform()));
    const auto count = static_cast<Index>(widths.size());
    const GaussianBasis<T> psi(count * (200 + random.below(40)), widths);
    const auto fewer = infty::fewer_gaussians<B>(psi);
    REQUIRE(static_cast<Index>(fewer.size()) == count);
    Index all = 0;
    for (Index i = 0; i < count; ++i) {
      const auto& part = fewer[static_cast<std::size_t>(i)];
      all += part.functions.size();
      for (const double var : {0., 1e-12, 1e-4, .0025, .3, 1e4})
        for (const double mu : {0., 1., random.uniform(), random.uniform()}) {
          INFO("width " << widths[static_cast<std::size_t>(i)] << ", N " << psi.size() << ", mu "
                        << mu << ", variance " << var);
          CHECK(difference(psi, part, i, mu, var) < tolerance);
        }
      for (const T weight : part.weights.to_vector()) CHECK(weight >= 0);
    }
    CHECK(all < psi.size());
  }
}

TEST_CASE("fewer_gaussians: the paper's 1,024 functions are 265, and more of the same no more") {
  const auto count = [](Index n) {
    Index sum = 0;
    for (const auto& part :
         infty::fewer_gaussians<infty::EigenBackend>(GaussianBasis<float>(n, {.01, .05})))
      sum += part.functions.size();
    return sum;
  };
  CHECK(count(1024) == 265);
  CHECK(count(4096) == 265);
  CHECK(count(264) == 0);
}

TEST_CASE("fewer_gaussians: none where they are not fewer, however narrow functions are") {
  for (const double width : {1e-3, 1e-10, 1e-18})
    CHECK(infty::fewer_gaussians<infty::EigenBackend>(GaussianBasis<float>(64, {width})).empty());
  CHECK(infty::fewer_gaussians<infty::EigenBackend>(GaussianBasis<double>(1, {.1})).empty());
  CHECK(infty::fewer_gaussians<infty::EigenBackend>(GaussianBasis<double>(64, {1e-150})).empty());
}

TEST_CASE("GaussianBasis: centres by steps") {
  const GaussianBasis<float> psi(6, std::vector{.1, .2}, -.5, .25);
  CHECK(psi.centre(0) == -.5f);
  CHECK(psi.centre(1) == -.5f);
  CHECK(psi.centre(5) == 0);
  CHECK(psi.cast<double>().centre(2) == -.25);
  CHECK_THROWS_WITH(
      GaussianBasis<float>(2, std::vector{.1}, 0, 0),
      "[GaussianBasis] centres from 0 on by steps of 0: all of them must be finite, and the "
      "step positive");
}
