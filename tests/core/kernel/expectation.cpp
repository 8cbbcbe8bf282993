// SPDX-License-Identifier: MIT
#include <cstddef>
#include <vector>

#include <infty/core/number.hpp>
#include <infty/memory/ops/expected_values.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/power_basis.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "support/catch.hpp"
#include "support/expectation_case.hpp"
#include "support/kernel.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"
#if defined(INFTY_TEST_THRUST)
#include "support/item_orders.hpp"
#endif

using infty::GaussianBasis;
using infty::GaussianDensity;
using infty::Index;
using infty::ReadSize;
using infty::TruncatedParabola;
using infty::tests::ExpectationCase;

namespace {

/// Sizes whose last tiles are partly empty, one more than the CPU's tile of 64 queries, heads of
/// odd width, heads for which a GPU's tiles are smaller or, in double, too wide for any, and
/// several of everything.
const std::vector<ReadSize>& read_sizes() {
  static const std::vector<ReadSize> all{
      {1, 1, 1, 1, 1},   {2, 7, 6, 3, 5},     {1, 65, 12, 1, 4},   {3, 130, 66, 2, 4},
      {3, 200, 8, 2, 3}, {2, 65, 128, 1, 64}, {1, 30, 40, 2, 130}, {1, 5, 9, 1, 1100}};
  return all;
}

template <class T>
GaussianBasis<T> gaussians(Index n) {
  return n % 2 ? GaussianBasis<T>(n, {.3}) : GaussianBasis<T>(n, {.05, .2});
}

template <class B, class D, class Psi, class T = typename Psi::Scalar>
void expectations_agree(const ReadSize& s, const Psi& psi) {
  CAPTURE(s.batch, s.queries, s.basis, s.heads, s.head_dim);
  const ExpectationCase<T, B> c(s);
  infty::tests::kernel_equals_composition<infty::ComposedExpectation<D, B>>(
      [&]<class Kernel>() { return c.template run<Kernel>(psi); }, infty::tests::tolerance<T>);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("expectation: the kernel has the composition's values and gradients", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const ReadSize& s : read_sizes()) {
    expectations_agree<B, GaussianDensity>(s, gaussians<T>(s.basis));
    expectations_agree<B, TruncatedParabola>(s, gaussians<T>(s.basis));
  }
}

TEMPLATE_LIST_TEST_CASE("expectation: the kernel takes any basis", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  expectations_agree<B, GaussianDensity>({2, 10, 4, 2, 3}, infty::PowerBasis<T>(4));
  expectations_agree<B, GaussianDensity>({2, 10, 6, 2, 3}, infty::SineBasis<T>(6));
}

TEMPLATE_LIST_TEST_CASE("expectation: the kernel adds only the gradients that are wanted", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const ExpectationCase<T, B> c({2, 70, 66, 2, 3});
  const auto run = [&](unsigned wanted) {
    return c.template run<typename B::template FusedExpectation<GaussianDensity>>(gaussians<T>(66),
                                                                                  wanted);
  };
  infty::tests::gradients_come_alone(1, 2, run);
}

TEMPLATE_LIST_TEST_CASE("expectation: the kernel has the same bits with any number of threads", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const ExpectationCase<T, B> c({2, 150, 16, 3, 8});
  const auto run = [&] {
    return c.template run<typename B::template FusedExpectation<GaussianDensity>>(gaussians<T>(16));
  };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(3, run));
}

namespace {

/// Narrow densities in the order of their means: tiles of queries see few of 256 functions.
template <class T, class B>
ExpectationCase<T, B> narrow_case(bool skip_tails) {
  const ReadSize s{2, 200, 256, 2, 6, skip_tails};
  const Index n = s.batch * s.heads * s.queries;
  std::vector<T> numbers;
  for (Index i = 0; i < n; ++i)
    numbers.push_back(static_cast<T>(i % s.queries) / static_cast<T>(s.queries) / 2);
  for (Index i = 0; i < n; ++i) numbers.push_back(T(1e-5) * static_cast<T>(1 + i % 7));
  return ExpectationCase<T, B>(
      s, infty::Tensor<T, B>::from({2, s.batch, s.heads, s.queries}, numbers));
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("expectation: functions out of reach are left out if they may be", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Kernel = typename B::template FusedExpectation<GaussianDensity>;
  const GaussianBasis<T> psi(256, {.005, .01});
  const auto c = narrow_case<T, B>(true);
  infty::tests::kernel_equals_composition<infty::ComposedExpectation<GaussianDensity, B>>(
      [&]<class K>() { return c.template run<K>(psi); }, infty::tests::tolerance<T>);
  // No query looks beyond .5 + 11 sqrt(.01² + 7e-5) < .65, so the last quarter of the values,
  // which any weight would make NaN of, must not be met.
  for (const bool skip_tails : {true, false}) {
    auto far = narrow_case<T, B>(skip_tails);
    std::vector<T> values = far.values.to_vector();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (i / 12 % 256 >= 192) values[i] = infty::math::not_a_number<T>;
    far.values = infty::Tensor<T, B>::from(far.values.shape(), values);
    const auto results = far.template run<Kernel>(psi);
    CAPTURE(skip_tails);
    for (std::size_t which = 0; which < 3; ++which) {
      std::size_t bad = 0;
      for (const T& x : results[which]) bad += !infty::math::is_finite(x);
      if (skip_tails || which == 2)
        CHECK(bad == 0);
      else
        CHECK(bad == results[which].size());
    }
  }
}

#if defined(INFTY_TEST_THRUST)
TEST_CASE("expectation by tiles: the kernels have no race") {
  CHECK(infty::tests::same_in_all_orders([&]<class B>() {
    return narrow_case<float, B>(true)
        .template run<typename B::template FusedExpectation<GaussianDensity>>(
            GaussianBasis<float>(256, {.005, .01}));
  }));
  for (const ReadSize& s : read_sizes())
    CHECK(infty::tests::same_in_all_orders([&]<class B>() {
      return ExpectationCase<float, B>(s)
          .template run<typename B::template FusedExpectation<GaussianDensity>>(
              gaussians<float>(s.basis));
    }));
}
#endif
