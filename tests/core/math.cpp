// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>

#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/core/random.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"
#include "support/ulps.hpp"

namespace math = infty::math;

namespace {

// The largest distance over numbers drawn from [low, high).
template <class T, class F, class Exact>
long double worst(F f, Exact exact, double low, double high) {
  infty::Random random(infty::tests::seed);
  long double most = 0;
  for (int i = 0; i < 100'000; ++i) {
    // Stored, or with FMA it may be rounded in one way for f and in another for the exact function.
    const volatile T drawn = static_cast<T>(low + (high - low) * random.uniform());
    const T x = drawn;
    most = std::max(most, infty::tests::ulps_between(f(x), exact(static_cast<long double>(x))));
  }
  return most;
}

long double exact_exp(long double x) { return std::exp(x); }
long double exact_sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double exact_softplus(long double x) { return std::log1p(std::exp(x)); }

}  // namespace

TEMPLATE_TEST_CASE("exp: 2 ulp over the whole range, denormal results included", "", float,
                   double) {
  using T = TestType;
  const auto f = [](T x) { return math::exp(x); };
  CHECK(worst<T>(f, exact_exp, -1, 1) <= 2);
  CHECK(worst<T>(f, exact_exp, -1e-3, 1e-3) <= 2);
  CHECK(worst<T>(f, exact_exp, -20, 20) <= 2);
  const bool single = std::is_same_v<T, float>;
  CHECK(worst<T>(f, exact_exp, single ? -87 : -708, single ? 88 : 709) <= 2);
  CHECK(worst<T>(f, exact_exp, single ? -105 : -746, single ? -87 : -708) <= 2);
}

TEMPLATE_TEST_CASE("exp_decay: 2 ulp where e^x is normal, 0 below", "", float, double) {
  using T = TestType;
  const bool single = std::is_same_v<T, float>;
  const auto f = [](T x) { return math::exp_decay(x); };
  CHECK(worst<T>(f, exact_exp, -1, 1) <= 2);
  CHECK(worst<T>(f, exact_exp, -1e-3, 1e-3) <= 2);
  CHECK(worst<T>(f, exact_exp, single ? -87 : -708, 0) <= 2);
  CHECK(f(T(0)) == T(1));
  CHECK(f(T(-0.0)) == T(1));
  CHECK(f(-std::numeric_limits<T>::denorm_min()) == T(1));
  for (const T x : {T(single ? -87.4 : -708.4), T(-745), T(-1e30), std::numeric_limits<T>::lowest(),
                    -std::numeric_limits<T>::infinity()})
    CHECK(f(x) == T(0));
  CHECK(std::isnan(f(std::numeric_limits<T>::quiet_NaN())));
  CHECK(std::isnan(f(-std::numeric_limits<T>::quiet_NaN())));
}

TEMPLATE_TEST_CASE("exp_of_share: e^x, or 0 where its square is below the least normal number", "",
                   float, double) {
  using T = TestType;
  const T low = std::is_same_v<T, float> ? T(-43.6) : T(-354.1);
  const auto f = [](T x) { return math::exp_of_share(x); };
  for (T x = T(0); x >= low; x -= T(0.01)) {
    REQUIRE(f(x) == math::exp(x));
    REQUIRE(f(x) * f(x) >= std::numeric_limits<T>::min());
  }
  for (const T x : {low * T(1.001), T(-1000), T(-1e30), -std::numeric_limits<T>::infinity()})
    CHECK(f(x) == T(0));
  CHECK(std::isnan(f(std::numeric_limits<T>::quiet_NaN())));
}

TEMPLATE_TEST_CASE("exp: the values with names", "", float, double) {
  using T = TestType;
  using Limits = std::numeric_limits<T>;
  CHECK(math::exp(T(0)) == T(1));
  CHECK(math::exp(T(-0.0)) == T(1));
  CHECK(math::exp(Limits::denorm_min()) == T(1));
  CHECK(math::exp(-Limits::denorm_min()) == T(1));
  CHECK(math::exp(T(1e30)) == Limits::infinity());
  CHECK(math::exp(T(-1e30)) == T(0));
  CHECK(math::exp(Limits::infinity()) == Limits::infinity());
  CHECK(math::exp(-Limits::infinity()) == T(0));
  CHECK(math::exp(Limits::max()) == Limits::infinity());
  CHECK(math::exp(Limits::lowest()) == T(0));
  CHECK(std::isnan(math::exp(Limits::quiet_NaN())));
  CHECK(std::isnan(math::exp(-Limits::quiet_NaN())));
  // The last finite result and the first infinite one.
  const T top = std::log(Limits::max());
  CHECK(math::exp(std::nextafter(top, T(0))) < Limits::infinity());
  CHECK(math::exp(top + T(0.1)) == Limits::infinity());
}

TEMPLATE_TEST_CASE("exp: grows with its argument across the steps of the reduction", "", float,
                   double) {
  using T = TestType;
  T x = T(-3), before = math::exp(x);
  for (int i = 0; i < 20'000; ++i) {
    x += T(3e-4);
    const T now = math::exp(x);
    REQUIRE(now > before);
    before = now;
  }
}

TEMPLATE_TEST_CASE("sigmoid: 4 ulp, saturates without overflow", "", float, double) {
  using T = TestType;
  using Limits = std::numeric_limits<T>;
  const auto f = [](T x) { return math::sigmoid(x); };
  CHECK(worst<T>(f, exact_sigmoid, -10, 10) <= 4);
  CHECK(worst<T>(f, exact_sigmoid, -80, -10) <= 4);
  CHECK(worst<T>(f, exact_sigmoid, 10, 80) <= 2);
  CHECK(math::sigmoid(T(0)) == T(0.5));
  CHECK(math::sigmoid(T(1e30)) == T(1));
  CHECK(math::sigmoid(T(-1e30)) == T(0));
  CHECK(math::sigmoid(Limits::infinity()) == T(1));
  CHECK(math::sigmoid(-Limits::infinity()) == T(0));
  CHECK(math::sigmoid(Limits::denorm_min()) == T(0.5));
  CHECK(std::isnan(math::sigmoid(Limits::quiet_NaN())));
}

TEMPLATE_TEST_CASE("softplus: 4 ulp, linear far up, e^x far down", "", float, double) {
  using T = TestType;
  using Limits = std::numeric_limits<T>;
  const auto f = [](T x) { return math::softplus(x); };
  CHECK(worst<T>(f, exact_softplus, -10, 10) <= 4);
  CHECK(worst<T>(f, exact_softplus, -80, -10) <= 4);
  CHECK(worst<T>(f, exact_softplus, 10, 80) <= 1);
  CHECK(infty::tests::ulps_between(math::softplus(T(0)), std::log(2.0L)) <= 1);
  CHECK(math::softplus(T(1e30)) == T(1e30));
  CHECK(math::softplus(T(-1e30)) == T(0));
  CHECK(math::softplus(Limits::infinity()) == Limits::infinity());
  CHECK(math::softplus(-Limits::infinity()) == T(0));
  CHECK(std::isnan(math::softplus(Limits::quiet_NaN())));
}

TEMPLATE_TEST_CASE("without_tail: 0 where the square is not normal, else rounded", "", float,
                   double) {
  using T = TestType;
  const T edge = std::sqrt((std::numeric_limits<T>::min)());
  CHECK(edge * edge == (std::numeric_limits<T>::min)());
  for (const T sign : {T(1), T(-1)}) {
    CHECK(math::without_tail<T>(sign * edge) == sign * edge);
    CHECK(math::without_tail<T>(sign * std::nextafter(edge, T(0))) == 0);
    CHECK(math::without_tail<T>(static_cast<double>(sign) * 0.1) == sign * T(0.1));
    CHECK(math::without_tail<T>(static_cast<double>(sign) * 1e-320) == 0);
  }
  CHECK(math::without_tail<T>(0) == 0);
  CHECK(math::is_nan(math::without_tail<T>(math::not_a_number<double>)));
}
