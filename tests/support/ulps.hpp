// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <infty/core/random.hpp>

namespace infty::tests {

/// The distance of a result from the exact one in units of the last place of the exact one, which
/// is the spacing of denormals below the normal numbers. Infinities and NaN must be met.
template <class T>
long double ulps_between(T got, long double exact) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) == std::isnan(got) ? 0 : Limits::infinity();
  if (got == static_cast<T>(exact)) return 0;
  int exponent = 0;
  std::frexp(exact, &exponent);
  const int last = std::max(exponent, Limits::min_exponent) - Limits::digits;
  return std::abs(static_cast<long double>(got) - exact) / std::ldexp(1.0L, last);
}

/// The largest distance over a thousand numbers of every binade, both signs, denormals, infinities
/// and NaN among them, and a hundred thousand from [-40, 40).
template <class T, class F, class Exact>
long double worst_everywhere(F f, Exact exact) {
  using Bits = std::conditional_t<std::is_same_v<T, float>, std::uint32_t, std::uint64_t>;
  long double most = 0;
  const auto look = [&](T x) {
    most = std::max(most, ulps_between(f(x), exact(static_cast<long double>(x))));
  };
  const Bits step = (std::is_same_v<T, float> ? Bits{1} << 13 : Bits{1} << 42) + 1;
  Bits bits = 0;
  do {
    look(std::bit_cast<T>(bits));
    bits += step;
  } while (bits >= step);
  Random random(1);
  for (int i = 0; i < 100'000; ++i) look(static_cast<T>(80 * random.uniform() - 40));
  return most;
}

}  // namespace infty::tests
