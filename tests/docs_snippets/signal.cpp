// SPDX-License-Identifier: MIT
#include <cmath>

#include <infty/eigen/backend.hpp>
#include <infty/signal/contraction.hpp>
#include <infty/signal/expectation.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/ridge_cache.hpp>

#include "support/catch.hpp"

namespace {

infty::Tensor<double> some_vectors(infty::Index length, double phase) {
  infty::Tensor<double> x({1, length, 2});
  for (infty::Index i = 0; i < length; ++i) {
    const double t = (static_cast<double>(i) + 0.5) / static_cast<double>(length);
    x.data()[2 * i] = std::sin(6 * t + phase);
    x.data()[2 * i + 1] = std::cos(6 * t + phase);
  }
  return x;
}

}  // namespace

TEST_CASE("docs: the memory's mathematics without a layer") {
  const auto first = some_vectors(40, 0), second = some_vectors(25, 1);
  const auto mu = infty::Tensor<double>::full({1}, 0.9),
             var = infty::Tensor<double>::full({1}, 1e-4);

  const infty::GaussianBasis<double> psi(32, {.05, .1});  // N = 32: two widths at 16 centres
  const infty::RidgeCache<double, infty::EigenBackend, infty::GaussianBasis<double>> ridge(
      psi, {.penalty = 0.1, .samples = 64, .tau = 0.75});
  auto B = fit(ridge.first(40), first);   // [1, 32, 2]: X(t) = Bᵀ psi(t), from 40 vectors
  B = update(ridge.next(25), B, second);  // contracted to [0, .75], 25 vectors behind it
  const auto X = resample(psi, B, mu);    // [1, 1, 2]: the signal at t = .9
  const auto r =
      expectation(infty::GaussianDensity{}, psi, mu, var);  // [1, 32]: E[psi], N(.9, 1e-4)

  CHECK(B.shape() == infty::Shape{1, 32, 2});
  // A narrow density reads what the signal is where it stands.
  for (infty::Index c = 0; c < 2; ++c) {
    double read = 0;
    for (infty::Index j = 0; j < 32; ++j) read += r.data()[j] * B.data()[2 * j + c];
    CHECK(read == Approx(X.data()[c]).margin(0.05));
  }
  // t = .9 is where vector number (.9 - .75) / .25 * 25 = 15 of the second write stands.
  CHECK(X.data()[0] == Approx(second.data()[2 * 14]).margin(0.1));
}
