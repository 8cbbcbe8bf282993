// SPDX-License-Identifier: MIT
#include <infty/thrust/fixed_divisor.hpp>

#include "support/catch.hpp"

using infty::detail::FixedDivisor;

TEST_CASE("FixedDivisor: the quotient is the division's as far as it is promised") {
  int wrong = 0;
  for (int n = 1; n <= 1100; ++n) {
    const FixedDivisor divisor(n);
    wrong += divisor.divisor() != n;
    for (int x = 0; x < 70 * n; x += x < 3 * n ? 1 : n + 1) wrong += divisor.quotient(x) != x / n;
    // The largest that is promised, where it is largest in 31 bits, and its neighbours.
    const long long most = (1LL << 32) / n - 1;
    for (long long x = most - 2 * n; x <= most; ++x)
      if (x >= 0 && x < (1LL << 31))
        wrong += divisor.quotient(static_cast<int>(x)) != static_cast<int>(x / n);
  }
  CHECK(wrong == 0);
  CHECK(FixedDivisor().quotient(12345) == 12345);
}
