// SPDX-License-Identifier: MIT
#include <algorithm>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/core/row.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace row_tests {

using infty::Index;

/// Sixteen lanes, of which halves are added to halves until one is left.
template <class T>
T sum_by_lanes(const std::vector<T>& x) {
  std::vector<T> lane(16, T(0));
  for (std::size_t i = 0; i < x.size(); ++i) lane[i % 16] += x[i];
  for (std::size_t half = 8; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

}  // namespace row_tests

TEMPLATE_TEST_CASE("row_sum, row_max: of any length, the order of sums is that of sixteen lanes",
                   "", float, double) {
  using namespace row_tests;
  using T = TestType;
  infty::Random random(infty::tests::seed);
  for (Index n = 0; n <= 100; ++n) {
    const auto x = infty::tests::uniform_tensor<T>(infty::Shape{n}, random).to_vector();
    const auto at = [&](Index i) { return x[static_cast<std::size_t>(i)]; };
    CAPTURE(n);
    CHECK(infty::detail::row_sum<T>(n, at) == sum_by_lanes(x));
    if (n > 0) CHECK(infty::detail::row_max<T>(n, at) == *std::max_element(x.begin(), x.end()));
  }
}
