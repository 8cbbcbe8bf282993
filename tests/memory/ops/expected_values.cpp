// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/expected_values.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/truncated_parabola.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/expectation_case.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::EigenBackend;
using infty::GaussianBasis;
using infty::GaussianDensity;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::TruncatedParabola;
using infty::Variable;
using infty::tests::ExpectationCase;
using infty::tests::some_densities;

namespace {

template <class D>
using Fused = EigenBackend::FusedExpectation<D>;

}  // namespace

TEMPLATE_TEST_CASE("expected_values: gradients", "", GaussianDensity, TruncatedParabola) {
  Random random(infty::tests::seed);
  const GaussianBasis<double> psi(6, {.1, .3});
  const Variable<double> density(some_densities<double>({2, 3, 6, 2, 2}, random), true);
  const auto values = infty::tests::uniform_variable<double>({2, 6, 4}, random);
  const auto loss = [&] {
    const auto z = infty::expected_values<TestType>(psi, density, values);
    return infty::sum(z * z);
  };
  // Variances of 3e-4 and more are moved by 1e-6: the third derivative is below 1e5 of the first.
  CHECK(infty::gradient_check(loss, std::vector{density, values}, 1e-6) < 1e-6);
}

TEMPLATE_LIST_TEST_CASE("expected_values: one function and one query by hand", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // psi = N(t; 0, .09), p = N(t; .4, .16): the integral E of the product is N(.4; 0, .25), so that
  // dE / dmu = -.4 / .25 E and dE / dvar = (.4² / .25 - 1) / (2 .25) E.
  const GaussianBasis<T> psi(1, {.3});
  const auto of = [](Shape shape, const std::vector<T>& numbers) {
    return Variable<T, B>(Tensor<T, B>::from(shape, numbers), true);
  };
  const auto density = of({2, 1, 1, 1}, {T(.4), T(.16)}), values = of({1, 1, 2}, {T(1), T(-10)});
  infty::Tape tape;
  const auto z = infty::expected_values<GaussianDensity>(psi, density, values);
  tape.backward(infty::sum(z));
  const double E = std::exp(-.5 * .16 / .25) / (.5 * std::sqrt(2 * 3.14159265358979324));
  const auto near = [](const Tensor<T, B>& got, const std::vector<double>& expected) {
    CHECK(infty::tests::error(got.to_vector(), expected) < infty::tests::tolerance<T>);
  };
  near(z.value(), {E, -10 * E});
  near(values.grad(), {E, E});
  near(density.grad(), {-9 * -.4 / .25 * E, -9 * (.16 / .25 - 1) / .5 * E});
}

TEMPLATE_TEST_CASE("expected_values: functions are left out where their share is lost in rounding",
                   "", float, double) {
  using T = TestType;
  const infty::ReadSize all{2, 300, 256, 2, 3, false}, some{2, 300, 256, 2, 3, true};
  const GaussianBasis<T> psi(all.basis, {.005, .02});
  Random random(infty::tests::seed);
  const auto density = some_densities<T>(all, random, std::log(1e-6), std::log(1e-4));
  const Index n = density.size() / 2;

  // What is left out of a tile of neighbours is as small as promised, gradients too.
  const infty::detail::QueryOrder<GaussianDensity, T, GaussianBasis<T>> order(some, psi,
                                                                              density.data());
  const T tail = std::numeric_limits<T>::epsilon() / static_cast<T>(all.basis);
  Index left_out = 0, wrong = 0;
  for (Index row = 0; row < all.batch * all.heads; ++row)
    for (Index first = 0; first < all.queries; first += 64) {
      std::vector<T> mu, var;
      for (Index i = first; i < std::min<Index>(first + 64, all.queries); ++i) {
        const Index at = row * all.queries + order.queries(row)[i];
        mu.push_back(density.data()[at]);
        var.push_back(density.data()[n + at]);
      }
      const auto range = order.functions(psi, mu.data(), var.data(), std::ssize(mu));
      for (Index j = 0; j < all.basis; ++j) {
        if (j >= range.begin && j < range.end) continue;
        ++left_out;
        for (std::size_t i = 0; i < mu.size(); ++i) {
          const auto x = GaussianDensity::expectation_gradient(psi, j, mu[i], var[i]);
          const T sd = std::sqrt(psi.width(j) * psi.width(j) + var[i]), top = T(.4) / sd;
          wrong += x.value > tail / 64 * top || std::abs(x.d_mu) * sd > tail * top ||
                   std::abs(x.d_var) * sd * sd > tail * top;
        }
      }
    }
  CHECK(wrong == 0);
  CHECK(left_out > 8 * all.basis);  // of 20 tiles

  const auto read = [&](const infty::ReadSize& s, const Tensor<T>& at) {
    return ExpectationCase<T, EigenBackend>(s, at).template run<Fused<GaussianDensity>>(psi);
  };
  Random wide(infty::tests::seed);
  for (const Tensor<T>& at : {density, some_densities<T>(all, wide)}) {
    const auto exact = read(all, at), skipped = read(some, at);
    for (std::size_t i = 0; i < exact.size(); ++i)
      CHECK(infty::tests::error(skipped[i], exact[i]) < infty::tests::tolerance<T>);
  }
}

TEST_CASE("expected_values: queries are put in order where they fill more than a tile") {
  const infty::ReadSize s{2, 40, 32, 2, 3, true};
  const GaussianBasis<float> psi(s.basis, {.01});
  Random random(infty::tests::seed);
  const auto density = some_densities<float>(s, random);
  using Order = infty::detail::QueryOrder<GaussianDensity, float, GaussianBasis<float>>;
  const Order one(s, psi, density.data(), s.queries), more(s, psi, density.data(), s.queries - 1);
  for (Index row = 0; row < s.batch * s.heads; ++row) {
    std::vector<Index> seen;
    for (Index i = 0; i < s.queries; ++i) {
      CHECK(one.queries(row)[i] == i);
      seen.push_back(more.queries(row)[i]);
      if (i == 0) continue;
      // By 256 places; the order within one is that of the queries.
      const float* const mu = density.data() + row * s.queries;
      const auto place = [&](Index query) {
        return std::clamp(static_cast<int>(mu[query] * 256), 0, 255);
      };
      CHECK(place(more.queries(row)[i - 1]) <= place(more.queries(row)[i]));
    }
    std::sort(seen.begin(), seen.end());
    for (Index i = 0; i < s.queries; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("expected_values: a density that is no number spoils its query and no other") {
  const infty::ReadSize s{1, 70, 8, 1, 2};
  const GaussianBasis<float> psi(8, {.05});
  Random random(infty::tests::seed);
  auto density = some_densities<float>(s, random);
  const auto values = infty::tests::uniform_tensor<float>({1, 8, 2}, random);
  Tensor<float> clean({1, 70, 2}), spoilt({1, 70, 2});
  Fused<GaussianDensity>::forward(s, psi, density.data(), values.data(), clean.data());
  density.data()[33] = std::numeric_limits<float>::quiet_NaN();
  density.data()[70 + 12] = std::numeric_limits<float>::infinity();
  Fused<GaussianDensity>::forward(s, psi, density.data(), values.data(), spoilt.data());
  for (Index i = 0; i < 140; ++i) {
    CAPTURE(i);
    if (i / 2 == 33)
      CHECK(std::isnan(spoilt.data()[i]));
    else if (i / 2 != 12)
      CHECK(spoilt.data()[i] == Approx(clean.data()[i]).margin(1e-6));
  }
}

TEST_CASE("expected_values: shapes that do not fit") {
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  const GaussianBasis<float> psi(3, {.1});
  const auto read = [&](Shape density, Shape values) {
    return infty::expected_values<GaussianDensity>(psi, zeros(density), zeros(values));
  };
  CHECK_THROWS_WITH(read({2, 1, 2, 5}, {1, 4, 6}),
                    "[expected_values] density is [2, 1, 2, 5], values are [1, 4, 6]: they must be "
                    "[2, B, H, Q] and [B, N, HD], N = 3");
  CHECK_THROWS_AS(read({2, 1, 2, 5}, {1, 3, 5}), infty::ShapeError);
  CHECK_THROWS_AS(read({2, 2, 2, 5}, {1, 3, 6}), infty::ShapeError);
  CHECK_THROWS_AS(read({1, 1, 2, 5}, {1, 3, 6}), infty::ShapeError);
  CHECK_THROWS_AS(read({2, 1, 0, 5}, {1, 3, 6}), infty::ShapeError);
}
