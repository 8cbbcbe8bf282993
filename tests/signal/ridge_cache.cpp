// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <infty/signal/contraction.hpp>
#include <infty/signal/contraction_rule.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/ridge_cache.hpp>

#include "signal/golden.hpp"
#include "support/catch.hpp"
#include "support/types.hpp"

using namespace infty;
using namespace infty::tests;
using Catch::Matchers::Contains;

namespace {

template <class T, class B>
using Cache = RidgeCache<T, B, GaussianBasis<T>>;

}  // namespace

TEMPLATE_LIST_TEST_CASE("RidgeCache: the recorded matrices, in parts", "", Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const std::string& name : ltm_cases) {
    CAPTURE(name);
    const LtmCase golden(name);
    const Index samples = golden.count("samples"), length = golden.count("length");
    const Cache<T, B> cache(
        golden.basis<T>(),
        {.penalty = golden.number("ridge"), .samples = samples, .tau = golden.number("tau")});
    // In float, the widths themselves are rounded, by 6e-8.
    const double allowed = std::is_same_v<T, float> ? 2e-6 : 1e-11;
    CHECK(relative_error(cache.first(length).to_vector(),
                         golden.file.read<double>("ridge.first")) <= allowed);
    const auto next = cache.next(length);
    auto rows = next.next_old.to_vector();
    const auto behind = next.next_new.to_vector();
    rows.insert(rows.end(), behind.begin(), behind.end());
    CHECK(relative_error(rows, golden.file.read<double>("ridge.next")) <= allowed);
    CHECK(next.carry.shape() == Shape{cache.basis().size(), cache.basis().size()});
  }
}

TEST_CASE("RidgeCache: a matrix is solved once, and copies share it") {
  const Cache<double, EigenBackend> cache(GaussianBasis<double>(6, {0.1}), {.samples = 4});
  const auto copy = cache;
  const auto one = cache.first(5), two = copy.first(5);
  CHECK(one.data() == two.data());
  CHECK(cache.next(5).carry.data() == copy.next(5).carry.data());
  CHECK(copy.entries() == 2);
}

TEMPLATE_LIST_TEST_CASE("RidgeCache: the past is sampled by functions that are evaluated once", "",
                        Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const GaussianBasis<T> psi(6, {T(.1), T(.3)});
  const Cache<T, B> cache(psi, {.samples = 5});
  const auto copy = cache;
  const Tensor<T, B> one = cache.even_functions(), two = copy.even_functions();
  CHECK(one.data() == two.data());
  CHECK(one.to_vector() == evaluate(psi, even_locations<T, B>(5)).to_vector());
  CHECK(cache.entries() == 0);  // it is no matrix of a write
  std::vector<T> numbers;
  for (int i = 0; i < 2 * 6 * 3; ++i) numbers.push_back(std::sin(T(i)));
  const auto old = Tensor<T, B>::from({2, 6, 3}, numbers);
  CHECK(resample(one, old).to_vector() == resample(psi, old, even_locations<T, B>(5)).to_vector());
}

TEST_CASE("RidgeCache: what cannot be solved leaves no trace, and is tried again") {
  // A number beyond float, then none: throws while it is made, outside of any lock.
  const RidgeCache<float, EigenBackend, GaussianBasis<float>> cache(
      GaussianBasis<float>(2, {.1, .01}), {.penalty = 1e-300, .samples = 4});
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_WITH(cache.first(2), Contains("the penalty is too small"));
    CHECK(cache.entries() == 0);
    CHECK(cache.bytes() == 0);
  }
}

TEST_CASE("RidgeCache: the least recently used lengths leave, what was handed out stays") {
  const Cache<double, EigenBackend> cache(GaussianBasis<double>(6, {0.1}),
                                          {.samples = 4, .entries = 3});
  const auto kept = cache.first(1);
  const auto values = kept.to_vector();
  const double* const second = cache.first(2).data();
  cache.first(3);
  CHECK(cache.first(2).data() == second);  // now the most recently used
  cache.first(4);                          // 1 leaves
  CHECK(cache.first(2).data() == second);
  CHECK(cache.entries() == 3);
  const auto again = cache.first(1);
  CHECK(again.data() != kept.data());
  CHECK(again.to_vector() == values);
  for (Index length = 1; length < 200; ++length) cache.next(length);
  CHECK(cache.entries() == 6);
}

TEST_CASE("RidgeCache: no more bytes are kept than allowed, but always the last matrix") {
  const std::size_t one = 100 * 6 * sizeof(double);
  const Cache<double, EigenBackend> cache(GaussianBasis<double>(6, {0.1}),
                                          {.samples = 4, .bytes = 5 * one / 2});
  for (Index length = 90; length <= 100; ++length) cache.first(length);
  CHECK(cache.entries() == 2);
  CHECK(cache.bytes() <= 5 * one / 2);
  cache.first(1000);
  CHECK(cache.entries() == 1);
  CHECK(cache.bytes() == 10 * one);
}

TEST_CASE("RidgeCache: a penalty too small for the scalar is refused, or raised where bounded") {
  const GaussianBasis<float> psi(2, {.1, .01});
  const RidgeCache<float, EigenBackend, GaussianBasis<float>> tiny(
      psi, {.penalty = 1e-300, .samples = 4});
  CHECK_THROWS_WITH(tiny.first(2), Contains("the penalty is too small"));
  const RidgeCache<float, EigenBackend, GaussianBasis<float>> bounded(
      psi, {.penalty = 1e-300, .samples = 4, .bounded = true});
  for (const float g : bounded.first(2).to_vector()) CHECK(std::isfinite(g));
}

TEST_CASE("RidgeCache: refuses settings and lengths out of range, and is as it was") {
  using C = Cache<float, EigenBackend>;
  const GaussianBasis<float> psi(6, {0.1});
  CHECK_THROWS_WITH(C(psi, {.penalty = 0, .samples = 4}), Contains("[RidgeCache] penalty is 0"));
  CHECK_THROWS_WITH(C(psi, {.penalty = 1}), Contains("samples is 0"));
  CHECK_THROWS_WITH(C(psi, {.samples = 4, .tau = 1}), Contains("tau is 1"));
  CHECK_THROWS_WITH(C(psi, {.samples = 4, .entries = 0}), Contains("entries is 0"));
  const C cache(psi, {.samples = 4});
  CHECK_THROWS_WITH(cache.first(0), Contains("[first_positions] length is 0"));
  CHECK_THROWS_WITH(cache.next(0), Contains("[next_positions] length is 0"));
  for (const Index wrong : {0, -3}) {
    CHECK_THROWS_AS(cache.next(5, wrong), ValueError);
    CHECK_THROWS_AS(cache.tau(wrong, 5), ValueError);
  }
  CHECK(cache.entries() == 0);
  CHECK(cache.first(3).shape() == Shape{3, 6});
  C moved(psi, {.samples = 4, .contraction = PowerContraction{1}});
  const C taken = std::move(moved);
  CHECK(taken.tau(100, 10) > .9);
  CHECK_THROWS_AS(moved.tau(100, 10), ValueError);
}

TEST_CASE("RidgeCache: a rule's share comes from the grid, and each share has its matrices") {
  const GaussianBasis<double> psi(6, {0.1});
  const infty::PowerContraction rule{1};
  const Cache<double, EigenBackend> ruled(psi, {.samples = 4, .contraction = rule, .entries = 9}),
      fixed(psi, {.samples = 4, .tau = infty::gridded_share("test", rule(30, 10))});
  CHECK(ruled.tau(30, 10) == fixed.settings().tau);
  CHECK(ruled.next(10, 30).next_new.to_vector() == fixed.next(10).next_new.to_vector());
  CHECK(ruled.next(10, 30).carry.to_vector() == fixed.next(10).carry.to_vector());
  CHECK(ruled.next(10, 30).carry.data() == ruled.next(10, 31).carry.data());  // the same share
  CHECK(ruled.next(10, 30).carry.data() != ruled.next(10, 60).carry.data());
  CHECK(ruled.entries() == 2);
  CHECK(fixed.next(10, 77).carry.data() == fixed.next(10).carry.data());
  CHECK_THROWS_WITH(ruled.next(10), Contains("changes with every write"));
  CHECK_THROWS_WITH(ruled.next(10, 0), Contains("written is 0"));
  CHECK_THROWS_WITH(ruled.next(0, 10), Contains("length is 0"));
  const Cache<double, EigenBackend> wrong(
      psi, {.samples = 4, .contraction = [](Index, Index) { return 1.5; }});
  CHECK_THROWS_WITH(wrong.next(10, 30), Contains("[RidgeCache] the contraction's tau is 1.5"));
}

TEST_CASE("RidgeCache: a smooth signal by the grid is that of exact shares, but for a fortieth") {
  const GaussianBasis<double> psi(24, {.04});
  for (const double power : {.5, 1., 2.}) {
    const infty::PowerContraction rule{power};
    const Cache<double, EigenBackend> gridded(
        psi, {.penalty = .01, .samples = 48, .contraction = rule, .entries = 99});
    constexpr Index end = 2000;
    const auto vectors = [&](Index from, Index length) {
      auto x = Tensor<double>({1, length, 1});
      for (Index i = 0; i < length; ++i)
        x.data()[i] = std::sin(6.283 * (static_cast<double>(from + i) + .5) / end);
      return x;
    };
    auto a = fit(gridded.first(40), vectors(0, 40)), b = a;
    for (Index written = 40; written < end;) {
      const Index length = std::min(written / 5, end - written);
      const Cache<double, EigenBackend> exact(
          psi, {.penalty = .01, .samples = 48, .tau = rule(written, length)});
      a = update(gridded.next(length, written), a, vectors(written, length));
      b = update(exact.next(length), b, vectors(written, length));
      written += length;
    }
    const auto places = infty::even_locations<double, EigenBackend>(40);
    const auto x = resample(psi, a, places).to_vector(), y = resample(psi, b, places).to_vector();
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) most = std::fmax(most, std::fabs(x[i] - y[i]));
    // A place t is off by .025 t |log t|, and so sin(2 pi t^(1 / p)) by .025 / e 2 pi at most.
    CAPTURE(power, most);
    CHECK(most < .0092 * 6.283);
    CHECK(most > 1e-4);
  }
}
