// SPDX-License-Identifier: MIT
#include <cmath>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/expected_values.hpp>
#include <infty/memory/ops/write.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/truncated_parabola.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Index;

/// N indicator functions, of the N equal cells of [0, 1].
template <class T>
struct Cells {
  using Scalar = T;
  Index n;

  INFTY_HOST_DEVICE Index size() const { return n; }
  INFTY_HOST_DEVICE T begin(Index j) const { return T(j) / T(n); }

  /// psi_j(t): all that a `Basis` is.
  INFTY_HOST_DEVICE T operator()(Index j, T t) const {
    return begin(j) <= t && t < begin(j + 1) ? T(1) : T(0);
  }

  /// The same functions in another scalar: ridge matrices are solved in double.
  template <class U>
  Cells<U> cast() const {
    return {n};
  }

  /// E[psi_j] under N(mu, var) and its gradient: makes it a basis for `GaussianDensity`.
  INFTY_HOST_DEVICE infty::Expectation<T> gaussian_expectation(Index j, T mu, T var) const {
    const T sigma = std::sqrt(var), a = (begin(j) - mu) / sigma, b = (begin(j + 1) - mu) / sigma;
    const T root2 = std::sqrt(T(2)), norm = 1 / std::sqrt(T(6.283185307179586));
    const T at_a = norm * std::exp(-a * a / 2), at_b = norm * std::exp(-b * b / 2);
    return {(std::erf(b / root2) - std::erf(a / root2)) / 2, (at_a - at_b) / sigma,
            (a * at_a - b * at_b) / (2 * var)};
  }

  /// Integrals of (t - origin)^k psi_j over [a, b]: an `IntegrableBasis`, for `TruncatedParabola`.
  INFTY_HOST_DEVICE infty::Integrals<T> integrals(Index j, T a, T b, T origin) const {
    const T from = std::fmax(a, begin(j)), to = std::fmin(b, begin(j + 1));
    if (!(from < to)) return {T(0), T(0), T(0)};
    const T u = from - origin, v = to - origin;
    return {v - u, (v * v - u * u) / 2, (v * v * v - u * u * u) / 3};
  }
};

static_assert(infty::Basis<Cells<float>> && infty::IntegrableBasis<Cells<double>>);
static_assert(infty::DensityOver<infty::GaussianDensity, Cells<float>>);
static_assert(infty::DensityOver<infty::TruncatedParabola, Cells<double>>);

TEST_CASE("docs: a basis of one's own is written and read") {
  using V = infty::Variable<double>;
  infty::Random random(infty::tests::seed);
  auto x = infty::tests::uniform_variable<double>({2, 6, 4}, random);
  // mu and sigma² of 2 rows, 2 heads, 3 queries
  auto density = infty::tests::uniform_variable<double>({2, 2, 2, 3}, random, 0.1, 0.9);

  const Cells<double> psi{8};
  const infty::RidgeCache<double, infty::EigenBackend, Cells<double>> ridge(psi, {.samples = 16});
  const auto read = [&] {
    const infty::RowCounts before(2, 0), counts(2, 6);
    const auto fresh = infty::Tensor<double>::zeros({2, 8, 4});
    const V B = write_coefficients(ridge, {fresh, before, {}, {}, {}}, x, counts, {});
    return sum(infty::expected_values<infty::GaussianDensity>(psi, density, B));
  };

  CHECK(gradient_check(read, std::vector<V>{x, density}) < 1e-8);
}
