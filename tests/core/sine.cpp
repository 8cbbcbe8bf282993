// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>

#include <infty/core/random.hpp>
#include <infty/core/sine.hpp>

#include "support/catch.hpp"

using infty::math::sine_and_cosine;

namespace sine_test {

/// The largest error of both, which `most` says.
template <class T>
long double worst(T least, T most, int count) {
  infty::Random random(1);
  long double error = 0;
  for (int i = 0; i < count; ++i) {
    // As many in every binade.
    const double exponent = std::log(static_cast<double>(most) / static_cast<double>(least));
    T x = static_cast<T>(static_cast<double>(least) * std::exp(exponent * random.uniform()));
    x = std::min(x, most);
    for (const T angle : {x, -x}) {
      const auto [sine, cosine] = sine_and_cosine(angle);
      const auto exact = static_cast<long double>(angle);
      error = std::max({error, std::abs(static_cast<long double>(sine) - std::sin(exact)),
                        std::abs(static_cast<long double>(cosine) - std::cos(exact))});
    }
  }
  return error;
}

}  // namespace sine_test

TEMPLATE_TEST_CASE("sine_and_cosine: as near as it says, for all that it takes", "", float,
                   double) {
  using T = TestType;
  const long double most = std::is_same_v<T, float> ? 1.2e-7L : 2.3e-16L;
  const T furthest = infty::math::furthest_angle<T>;
  CHECK(sine_test::worst<T>(T(1e-3), T(4), 200'000) <= most);
  CHECK(sine_test::worst<T>(T(1), furthest, 500'000) <= most);
  // Near multiples of pi / 2, where little is left of an angle.
  for (int n = 1; n < 5000; ++n)
    for (const int off : {-1, 0, 1}) {
      T x = static_cast<T>(static_cast<long double>(n) * 1.57079632679489661923L);
      if (off != 0) x = std::nextafter(x, off < 0 ? T(0) : furthest);
      const auto [sine, cosine] = sine_and_cosine(x);
      CAPTURE(n, off);
      CHECK(std::abs(static_cast<long double>(sine) - std::sin(static_cast<long double>(x))) <=
            most);
      CHECK(std::abs(static_cast<long double>(cosine) - std::cos(static_cast<long double>(x))) <=
            most);
    }
}

TEMPLATE_TEST_CASE("sine_and_cosine: small angles are their own sines, and signs are kept", "",
                   float, double) {
  using T = TestType;
  using Limits = std::numeric_limits<T>;
  for (const T x : {T(0), Limits::denorm_min(), Limits::min(), T(1e-20), T(1e-9)}) {
    const auto [sine, cosine] = sine_and_cosine(x);
    CHECK(std::abs(sine - x) <= T(1e-9) * x);
    CHECK(cosine == T(1));
    CHECK(sine_and_cosine(-x).sine == -sine);
  }
  for (const T x : {T(.5), T(2), T(40), infty::math::furthest_angle<T>}) {
    CHECK(sine_and_cosine(-x).sine == -sine_and_cosine(x).sine);
    CHECK(sine_and_cosine(-x).cosine == sine_and_cosine(x).cosine);
  }
}
