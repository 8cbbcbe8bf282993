// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <infty/signal/contraction.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/overshoot.hpp>
#include <infty/signal/positions.hpp>
#include <infty/signal/power_basis.hpp>
#include <infty/signal/rectangular_basis.hpp>
#include <infty/signal/ridge_cache.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::EigenBackend;
using infty::fit_size;
using infty::GaussianBasis;
using infty::held_points;
using infty::Index;
using infty::Random;
using infty::RidgeCache;
using infty::Tensor;
using infty::tests::uniform_tensor;

namespace {

using GaussianCache = RidgeCache<double, EigenBackend, GaussianBasis<double>>;

/// max_t sum_i |G_i . psi(t)| by a loop over places much finer than the narrowest function.
template <class Psi>
double plain_lebesgue(const Psi& psi, const Tensor<double>& G, double step = 4e-4) {
  const std::vector<double> g = G.to_vector();
  std::vector<double> values(static_cast<std::size_t>(psi.size()));
  const double* const end = g.data() + g.size();  // pointers, for sanitizers look at every call
  double most = 0;
  for (double t = 0; t <= 1; t += step) {
    for (std::size_t j = 0; j < values.size(); ++j) values[j] = psi(static_cast<Index>(j), t);
    double sum = 0;
    for (const double* row = g.data(); row != end;) {
      double value = 0;
      for (const double *v = values.data(), *last = v + values.size(); v != last; ++v, ++row)
        value += *row * *v;
      sum += std::fabs(value);
    }
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

TEST_CASE("held_points: as dense as the past, never fewer than the vectors, not without end") {
  CHECK(held_points(1, 64, .75) == 22);  // 64 / 3, rounded up
  CHECK(held_points(22, 64, .75) == 22);
  CHECK(held_points(23, 64, .75) == 23);
  CHECK(held_points(150, 512, .5) == 512);
  CHECK(held_points(1, 512, 1e-9) == 8 * 512);
  CHECK_THROWS_WITH(held_points(0, 4, .5), Catch::Contains("[held_points] length is 0"));
}

TEST_CASE("fit_size: the Lebesgue constant is that of a much finer grid") {
  for (const auto& widths : {std::vector{.01, .05}, std::vector{.1}, std::vector{.003}})
    for (const Index length : {1, 7, 40}) {
      const GaussianBasis<double> psi(16, widths);
      const auto G = infty::ridge_matrix<EigenBackend>(psi, infty::first_positions(length), .3);
      const double want = plain_lebesgue(psi, G), got = fit_size(psi, G).lebesgue;
      CAPTURE(widths, length);
      CHECK(got >= .99 * want);
      CHECK(got <= 1.001 * want);
    }
}

TEST_CASE("fit_size: the Lebesgue constant of any basis is that of a much finer grid") {
  // Fits that overshoot: a small penalty, as many functions as vectors and more.
  const auto check = [](const auto& psi, double penalty) {
    for (const Index length : {3, 9, 40}) {
      const auto G =
          infty::ridge_matrix<EigenBackend>(psi, infty::first_positions(length), penalty);
      const double want = plain_lebesgue(psi, G, 1e-4), got = fit_size(psi, G).lebesgue;
      CAPTURE(psi.size(), length, penalty);
      CHECK(got >= .99 * want);
      CHECK(got <= 1.0001 * want);
    }
  };
  for (const Index n : {1, 4, 17, 32})
    for (const double penalty : {1e-3, .5}) {
      check(infty::FourierBasis<double>(n), penalty);
      check(infty::SineBasis<double>(n), penalty);
      check(infty::CosineBasis<double>(n), penalty);
      check(infty::RectangularBasis<double>(n), penalty);
      if (n <= 17) check(infty::PowerBasis<double>(n), penalty);
    }
}

TEST_CASE("fit_size: reach is what coefficients, and sums of their values, can come to") {
  Random random(infty::tests::seed);
  const GaussianBasis<double> psi(12, {.05, .2});
  const auto G = infty::ridge_matrix<EigenBackend>(psi, infty::first_positions(9), .5);
  const double reach = fit_size(psi, G).reach;
  for (int trial = 0; trial < 200; ++trial) {
    const auto B = fit(G, uniform_tensor<double>({1, 9, 1}, random, -1, 1)).to_vector();
    for (const double b : B) CHECK(std::fabs(b) <= reach);
    const double t = random.uniform();
    double sum = 0;
    for (Index j = 0; j < 12; ++j) sum += std::fabs(B[static_cast<std::size_t>(j)] * psi(j, t));
    CHECK(sum <= reach);
  }
}

TEST_CASE("run_size: is not below what writes in a row add up to, and not far above") {
  // |v_k| for the worst signs: row sums of |S^j C|, added up one by one.
  for (const double tau : {.5, .75, .9}) {
    const GaussianBasis<double> psi(16, {.05, .1});
    const GaussianCache cache(psi, {.penalty = .5, .samples = 24, .tau = tau});
    const auto next = cache.next(20);
    const auto even = infty::evaluate(psi, infty::even_locations<double, EigenBackend>(24));
    const auto S = infty::detail::matrix_product(even, false, next.next_old, true);
    auto of_new = infty::detail::matrix_product(even, false, next.next_new, true), power = S;
    std::vector<double> h(24, 0);
    double s = 1;
    for (int k = 0; k < 400; ++k) {
      const auto sums = infty::detail::absolute_row_sums(of_new);
      for (std::size_t i = 0; i < 24; ++i) h[i] += sums[i];
      s = std::max(s, infty::detail::largest_of(infty::detail::absolute_row_sums(power)));
      of_new = infty::detail::matrix_product(S, false, of_new, false);
      power = infty::detail::matrix_product(S, false, power, false);
    }
    const auto run =
        infty::run_size(S, infty::detail::matrix_product(even, false, next.next_new, true));
    CAPTURE(tau, run.of_new, run.of_old);
    CHECK(run.of_new >= (1 - 1e-9) * infty::detail::largest_of(h));
    CHECK(run.of_new <= 3 * infty::detail::largest_of(h));
    CHECK(run.of_old >= (1 - 1e-9) * s);
    CHECK(run.of_old <= 4 * s);
  }
}

TEST_CASE("run_size: a recursion that grows, or does not end, is not proven") {
  for (const double a : {1.0, 1.1, 50.0}) {
    const auto S = Tensor<double>::full({1, 1}, a), C = Tensor<double>::full({1, 1}, 1);
    CHECK(std::isinf(infty::run_size(S, C).of_new));
  }
  const auto S = Tensor<double>::full({1, 1}, .5), C = Tensor<double>::full({1, 3}, 1);
  CHECK(infty::run_size(S, C).of_new == Approx(6));  // 3 (1 + 1/2 + 1/4 + ...)
  CHECK(infty::run_size(S, C).of_old == 1);
}

TEST_CASE("spectral_radius: of what one knows") {
  CHECK(infty::spectral_radius(Tensor<double>::from({1, 1}, {-.7})) == Approx(.7));
  CHECK(infty::spectral_radius(Tensor<double>::zeros({3, 3})) == 0);
  // A rotation by 90 degrees, shrunk: eigenvalues .3 i and -.3 i; and one that is not normal.
  CHECK(infty::spectral_radius(Tensor<double>::from({2, 2}, {0, -.3, .3, 0})) == Approx(.3));
  CHECK(infty::spectral_radius(Tensor<double>::from({2, 2}, {.5, 1e6, 0, .25})) ==
        Approx(.5).epsilon(1e-4));
  CHECK(infty::spectral_radius(Tensor<double>::from({2, 2}, {0, 1, 0, 0})) == 0);
  const double infinity = infty::math::infinity<double>;
  CHECK(infty::spectral_radius(Tensor<double>::from({2, 2}, {1, 0, -infinity, 1})) == infinity);
  CHECK(std::isnan(infty::spectral_radius(Tensor<double>::from({1, 1}, {std::nan("")}))));
}

TEST_CASE("RidgeCache: a held write is the fit of its vectors, each over several places") {
  Random random(infty::tests::seed);
  const GaussianBasis<double> psi(12, {.05, .2});
  const infty::RidgeSettings settings{.penalty = .5, .samples = 16, .tau = .75, .hold = true};
  const GaussianCache held(psi, settings), plain(psi, {.penalty = .5, .samples = 16, .tau = .75});
  for (const Index length : {1, 2, 4, 5}) {
    const auto x = uniform_tensor<double>({1, length, 2}, random);
    const Index points = held_points(length, 16, .75);
    REQUIRE(points == 6);
    Tensor<double> copies({1, points, 2});
    std::vector<Index> times(static_cast<std::size_t>(length), 0);
    for (Index i = 0; i < points; ++i) {
      const Index owner = i * length / points;
      ++times[static_cast<std::size_t>(owner)];
      for (Index j = 0; j < 2; ++j) copies.data()[i * 2 + j] = x.data()[owner * 2 + j];
    }
    CHECK(*std::max_element(times.begin(), times.end()) -
              *std::min_element(times.begin(), times.end()) <=
          1);
    CHECK(infty::tests::error(fit(held.next(length).next_new, x).to_vector(),
                              fit(plain.next(points).next_new, copies).to_vector()) < 1e-12);
    CHECK(infty::tests::error(fit(held.first(length), x).to_vector(),
                              fit(plain.first(points), copies).to_vector()) < 1e-12);
    CHECK(held.next(length).limits.points == points);
  }
  // Enough vectors are not touched.
  CHECK(held.next(6).next_new.to_vector() == plain.next(6).next_new.to_vector());
}

TEST_CASE("RidgeCache: a bounded fit has Λ <= 8, by a larger penalty if need be") {
  for (const Index samples : {1, 16})
    for (const double tau : {.01, .9, .999})
      for (const auto& widths : {std::vector{.001}, std::vector{.01, .05}, std::vector{.5}})
        for (const double penalty : {1e-9, 100.}) {
          const GaussianBasis<double> psi(16, widths);
          const GaussianCache cache(
              psi,
              {.penalty = penalty, .samples = samples, .tau = tau, .hold = true, .bounded = true});
          for (const Index length : {1, 50}) {
            const auto next = cache.next(length);
            Tensor<double> G({samples + length, 16});
            G.slice(0, samples).copy_from(next.next_old);
            G.slice(samples, samples + length).copy_from(next.next_new);
            CAPTURE(samples, tau, widths, penalty, length);
            CHECK(next.limits.penalty >= penalty);
            CHECK(next.limits.lebesgue <= infty::most_lebesgue);
            CHECK(fit_size(psi, G).lebesgue <= infty::most_lebesgue);
            CHECK(fit_size(psi, cache.first(length)).lebesgue <= infty::most_lebesgue);
          }
        }
}
