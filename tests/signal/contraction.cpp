// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/signal/contraction.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/ridge_cache.hpp>

#include "signal/golden.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using namespace infty;
using namespace infty::tests;
using Catch::Matchers::Contains;

TEMPLATE_LIST_TEST_CASE("even_locations: m / samples, the last one 1", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto t = even_locations<T, B>(4).to_vector();
  CHECK(t == std::vector<T>{T(0.25), T(0.5), T(0.75), T(1)});
}

TEMPLATE_LIST_TEST_CASE("fit: Gᵀ X of every row", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto G = Tensor<T, B>::from({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto X = Tensor<T, B>::from({2, 2, 1}, {1, 10, -1, 2});
  const auto got = fit(G, X);
  REQUIRE(got.shape() == Shape{2, 3, 1});
  CHECK(got.to_vector() == std::vector<T>{41, 52, 63, 7, 8, 9});
}

TEMPLATE_LIST_TEST_CASE("resample: the signal at shared and at separate locations", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const CosineBasis<T> psi(2);  // 1 and cos(2 pi t)
  const auto old = Tensor<T, B>::from({2, 2, 1}, {1, 2, 3, -1});
  const auto shared = resample(psi, old, Tensor<T, B>::from({3}, {T(0), T(0.25), T(0.5)}));
  REQUIRE(shared.shape() == Shape{2, 3, 1});
  CHECK(error(shared.to_vector(), std::vector<double>{3, 1, -1, 2, 3, 4}) <= tolerance<T>);
  const auto separate = resample(psi, old, Tensor<T, B>::from({2, 1}, {T(0.5), T(0)}));
  REQUIRE(separate.shape() == Shape{2, 1, 1});
  CHECK(error(separate.to_vector(), std::vector<double>{-1, 2}) <= tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("resample: a batch equals its rows one by one", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(seed);
  const GaussianBasis<T> psi(10, {0.05, 0.2});
  const auto old = uniform_tensor<T, B>({3, 10, 4}, random);
  const auto t = uniform_tensor<T, B>({3, 7}, random, 0, 1);
  const auto whole = resample(psi, old, t);
  for (Index row = 0; row < 3; ++row) {
    const auto alone = resample(psi, old.slice(row, row + 1), t.slice(row, row + 1));
    const auto expected = whole.slice(row, row + 1).to_vector();
    if constexpr (same_bits_in_any_batch<B>)
      CHECK(alone.to_vector() == expected);
    else
      CHECK(error(alone.to_vector(), expected) <= tolerance<T>);
  }
}

TEMPLATE_LIST_TEST_CASE("update: one matrix is contraction, resampling and fit", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(seed);
  const GaussianBasis<T> psi(12, {0.05, 0.2});
  // Few samples and more samples than vectors, odd lengths, one vector.
  for (const Index samples : {1, 8, 50})
    for (const Index length : {1, 7, 16}) {
      const RidgeCache<T, B, GaussianBasis<T>> cache(psi, {.penalty = 0.5, .samples = samples});
      auto coefficients = fit(cache.first(length), uniform_tensor<T, B>({2, length, 3}, random));
      for (int step = 0; step < 4; ++step) {
        const auto X = uniform_tensor<T, B>({2, length, 3}, random);
        const auto next = cache.next(length);
        const auto collapsed = update(next, coefficients, X);
        const auto written = update(next, psi, coefficients, X, even_locations<T, B>(samples));
        CAPTURE(samples, length, step);
        CHECK(error(collapsed.to_vector(), written.to_vector()) <= 10 * tolerance<T>);
        coefficients = collapsed;
      }
    }
}

TEST_CASE("update: a signal that a basis holds exactly survives the contraction") {
  // Without penalty to speak of and with narrow functions everywhere, the fit interpolates.
  const GaussianBasis<double> psi(64, {0.03});
  const RidgeCache<double, EigenBackend, GaussianBasis<double>> cache(
      psi, {.penalty = 1e-6, .samples = 96, .tau = 0.75});
  const Index length = 48;
  std::vector<double> wave;
  const Positions first = first_positions(length);
  for (const double t : first.inside) wave.push_back(std::sin(3.14159265358979 * t));
  const auto old = fit(cache.first(length), Tensor<double>::from({1, length, 1}, wave));
  const auto now = update(cache.next(length), old, Tensor<double>::zeros({1, length, 1}));
  const auto t = Tensor<double>::from({3}, {0.2, 0.375, 0.6});
  const auto x = resample(psi, now, t).to_vector();
  const double expected[] = {0.2, 0.375, 0.6};
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(x[i] ==
          Approx(std::sin(3.14159265358979 * expected[i] / 0.75)).margin(1e-3));  // X(t / tau)
}

TEST_CASE("update: what is written last does not depend on what was written first, in the end") {
  Random random(seed);
  const GaussianBasis<double> psi(16, {0.1});
  const RidgeCache<double, EigenBackend, GaussianBasis<double>> cache(psi,
                                                                      {.samples = 16, .tau = 0.5});
  auto one = uniform_tensor<double>({1, 16, 2}, random);
  auto other = uniform_tensor<double>({1, 16, 2}, random);
  for (int step = 0; step < 60; ++step) {
    const auto X = uniform_tensor<double>({1, 8, 2}, random);
    one = update(cache.next(8), one, X);
    other = update(cache.next(8), other, X);
  }
  CHECK(error(one.to_vector(), other.to_vector()) < 1e-12);
}

TEST_CASE("fit, resample and update: refuse shapes that do not fit") {
  const GaussianBasis<double> psi(4, {0.1});
  const RidgeCache<double, EigenBackend, GaussianBasis<double>> cache(psi, {.samples = 5});
  const auto next = cache.next(3);
  const auto zeros = [](Shape shape) { return Tensor<double>::zeros(shape); };
  CHECK_THROWS_WITH((even_locations<double, EigenBackend>(0)),
                    Contains("[even_locations] samples is 0"));
  CHECK_THROWS_WITH(fit(cache.first(3), zeros({2, 4, 6})),
                    Contains("[fit] vectors are [2, 4, 6]: they must be [batch, 3, e]"));
  CHECK_THROWS_AS(fit(zeros({3}), zeros({2, 3, 6})), ShapeError);
  CHECK_THROWS_WITH(resample(psi, zeros({2, 5, 6}), zeros({3})),
                    Contains("[resample] coefficients are [2, 5, 6]"));
  CHECK_THROWS_WITH(resample(psi, zeros({2, 4, 6}), zeros({3, 3})),
                    Contains("[resample] locations are [3, 3]"));
  CHECK_THROWS_AS(resample(psi, zeros({2, 4, 6}), zeros({1, 2, 3})), ShapeError);
  CHECK_THROWS_WITH(resample(zeros({4}), zeros({2, 4, 6})),
                    Contains("[resample] functions are [4]"));
  CHECK_THROWS_WITH(resample(zeros({3, 4, 4}), zeros({2, 4, 6})),
                    Contains("[resample] functions are [3, 4, 4] for coefficients [2, 4, 6]"));
  CHECK_THROWS_WITH(resample(zeros({3, 5}), zeros({2, 4, 6})),
                    Contains("[resample] coefficients are [2, 4, 6]"));
  CHECK_THROWS_WITH(update(next, zeros({2, 4, 6}), zeros({2, 4, 6})),
                    Contains("[update] vectors are [2, 4, 6]"));
  CHECK_THROWS_AS(update(next, zeros({2, 3, 6}), zeros({2, 3, 6})), ShapeError);
  CHECK_THROWS_WITH(update(next, zeros({2, 4, 6}), zeros({1, 3, 6})),
                    Contains("batch and width must agree"));
  CHECK_THROWS_WITH(update(next, psi, zeros({2, 4, 6}), zeros({2, 3, 6}), zeros({4})),
                    Contains("the last dimension must be 5"));
  CHECK_THROWS_AS(update(next, psi, zeros({2, 4, 6}), zeros({2, 3, 5}), zeros({5})), ShapeError);
}
