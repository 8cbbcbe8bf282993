// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/memory/ops/expected_values.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/truncated_parabola.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::ComposedExpectation;
using infty::EigenBackend;
using infty::GaussianBasis;
using infty::GaussianDensity;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::TruncatedParabola;
using infty::Variable;

namespace {

// The backend's kernel is the one that runs: a wrong name would fall back without a word.
template <class D>
using Fused = EigenBackend::FusedExpectation<D>;
template <class D>
using Composed = ComposedExpectation<D, EigenBackend>;
template <class D, class B>
using Chosen = typename infty::detail::ChosenExpectation<D, B>::type;
static_assert(std::is_same_v<Chosen<GaussianDensity, EigenBackend>, Fused<GaussianDensity>>);
static_assert(std::is_same_v<Chosen<TruncatedParabola, EigenBackend>, Fused<TruncatedParabola>>);
static_assert(!std::is_same_v<Fused<GaussianDensity>, Composed<GaussianDensity>>);

struct PlainBackend {};
static_assert(std::is_same_v<Chosen<GaussianDensity, PlainBackend>,
                             ComposedExpectation<GaussianDensity, PlainBackend>>);

/// [2, B, H, Q] with means around [0, 1] and variances from narrow to wide.
template <class T>
Tensor<T> densities(Index B, Index H, Index Q, Random& random) {
  Tensor<T> out(Shape{2, B, H, Q});
  const Index n = B * H * Q;
  for (Index i = 0; i < n; ++i) {
    out.data()[i] = static_cast<T>(-.1 + 1.2 * random.uniform());
    out.data()[n + i] = static_cast<T>(std::exp(-8 + 8 * random.uniform()));
  }
  return out;
}

template <class T>
struct Result {
  std::vector<T> out, d_density, d_values;
};

template <class Kernel, class T>
Result<T> run(const infty::ReadSize& s, const GaussianBasis<T>& psi) {
  Random random(infty::tests::seed);
  const Index e = s.heads * s.head_dim;
  const auto density = densities<T>(s.batch, s.heads, s.queries, random);
  const auto values = infty::tests::uniform_tensor<T>({s.batch, s.basis, e}, random);
  const auto d_out = infty::tests::uniform_tensor<T>({s.batch, s.queries, e}, random);
  // Backward passes add to what is there.
  auto d_density = Tensor<T>::full(density.shape(), T(1));
  auto d_values = Tensor<T>::full(values.shape(), T(-1));
  auto out = Tensor<T>::full(d_out.shape(), T(9));
  Kernel::forward(s, psi, density.data(), values.data(), out.data());
  Kernel::backward(s, psi, density.data(), values.data(), d_out.data(), d_density.data(),
                   d_values.data());
  auto only_values = Tensor<T>::full(values.shape(), T(-1));
  Kernel::backward(s, psi, density.data(), values.data(), d_out.data(), static_cast<T*>(nullptr),
                   only_values.data());
  CHECK(infty::tests::error(only_values.to_vector(), d_values.to_vector()) <
        infty::tests::tolerance<T>);
  Kernel::backward(s, psi, density.data(), values.data(), d_out.data(), static_cast<T*>(nullptr),
                   static_cast<T*>(nullptr));
  return {out.to_vector(), d_density.to_vector(), d_values.to_vector()};
}

template <class D, class T>
void compare(const infty::ReadSize& s, std::vector<double> widths) {
  const GaussianBasis<T> psi(s.basis, widths);
  const auto fused = run<Fused<D>, T>(s, psi);
  const auto composed = run<Composed<D>, T>(s, psi);
  CAPTURE(s.batch, s.queries, s.basis, s.heads, s.head_dim);
  CHECK(infty::tests::error(fused.out, composed.out) < infty::tests::tolerance<T>);
  CHECK(infty::tests::error(fused.d_density, composed.d_density) < infty::tests::tolerance<T>);
  CHECK(infty::tests::error(fused.d_values, composed.d_values) < infty::tests::tolerance<T>);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("expected_values: the fused kernel is the composition", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  // One of everything, odd sizes, one more than a tile of 64 queries and several tiles.
  for (const infty::ReadSize& s :
       {infty::ReadSize{1, 1, 1, 1, 1}, infty::ReadSize{2, 7, 6, 3, 5},
        infty::ReadSize{1, 65, 12, 1, 4}, infty::ReadSize{3, 200, 8, 2, 3}}) {
    const std::vector<double> widths = s.basis % 2 ? std::vector{.3} : std::vector{.05, .2};
    compare<GaussianDensity, T>(s, widths);
    compare<TruncatedParabola, T>(s, widths);
  }
}

TEMPLATE_TEST_CASE("expected_values: gradients", "", GaussianDensity, TruncatedParabola) {
  Random random(infty::tests::seed);
  const GaussianBasis<double> psi(6, {.1, .3});
  const Variable<double> density(densities<double>(2, 2, 3, random), true);
  const auto values = infty::tests::uniform_variable<double>({2, 6, 4}, random);
  const auto loss = [&] {
    const auto z = infty::expected_values<TestType>(psi, density, values);
    return infty::sum(z * z);
  };
  // Variances of 3e-4 and more are moved by 1e-6: the third derivative is below 1e5 of the first.
  CHECK(infty::gradient_check(loss, std::vector{density, values}, 1e-6) < 1e-6);
}

TEST_CASE("expected_values: one function and one query by hand") {
  // psi = N(t; 0, .09), p = N(t; .4, .16): the integral of the product is N(.4; 0, .25).
  const GaussianBasis<double> psi(1, {.3});
  const Variable<double> density(Tensor<double>::from({2, 1, 1, 1}, {.4, .16}));
  const Variable<double> values(Tensor<double>::from({1, 1, 2}, {1, -10}));
  const auto z = infty::expected_values<GaussianDensity>(psi, density, values).value().to_vector();
  CHECK(z[0] == Approx(std::exp(-.5 * .16 / .25) / (.5 * std::sqrt(2 * 3.14159265358979324))));
  CHECK(z[1] == Approx(-10 * z[0]));
}

TEST_CASE("expected_values: the same bits with one thread and with two") {
  const auto all = [] {
    const auto r =
        run<Fused<GaussianDensity>, float>({2, 150, 16, 3, 8}, GaussianBasis<float>(16, {.05, .2}));
    auto bits = r.out;
    bits.insert(bits.end(), r.d_density.begin(), r.d_density.end());
    bits.insert(bits.end(), r.d_values.begin(), r.d_values.end());
    return bits;
  };
  CHECK(infty::tests::with_threads(1, all) == infty::tests::with_threads(2, all));
}

TEMPLATE_TEST_CASE("expected_values: functions are left out where their share is lost in rounding",
                   "", float, double) {
  using T = TestType;
  const infty::ReadSize all{2, 300, 256, 2, 3, false}, some{2, 300, 256, 2, 3, true};
  const GaussianBasis<T> psi(all.basis, {.005, .02});
  Random random(infty::tests::seed);
  auto density = densities<T>(all.batch, all.heads, all.queries, random);
  const Index n = density.size() / 2;
  for (Index i = n; i < 2 * n; ++i)
    density.data()[i] = static_cast<T>(1e-6 + 1e-4 * random.uniform());

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

  const auto exact = run<Fused<GaussianDensity>, T>(all, psi);
  const auto skipped = run<Fused<GaussianDensity>, T>(some, psi);
  CHECK(infty::tests::error(skipped.out, exact.out) < infty::tests::tolerance<T>);
  CHECK(infty::tests::error(skipped.d_density, exact.d_density) < infty::tests::tolerance<T>);
  CHECK(infty::tests::error(skipped.d_values, exact.d_values) < infty::tests::tolerance<T>);
}

TEST_CASE("expected_values: a density that is no number spoils its query and no other") {
  const infty::ReadSize s{1, 70, 8, 1, 2};
  const GaussianBasis<float> psi(8, {.05});
  Random random(infty::tests::seed);
  auto density = densities<float>(1, 1, 70, random);
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
