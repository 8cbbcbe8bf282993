// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <infty/memory/ops/largest.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::detail::largest_with;
using infty::detail::require_writable;

TEMPLATE_LIST_TEST_CASE(
    "largest_with: the larger of what was and of every |x|, by row and coordinate", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{2, 7, 130}, Shape{3, 0, 4}}) {
    const Index batch = shape[0], length = shape[1], d = shape[2];
    const auto x = infty::tests::uniform_tensor<T, B>({batch, length, d}, random, -2, 2);
    const auto before = infty::tests::uniform_tensor<T, B>({batch, d}, random, 0, 2);
    auto want = before.to_vector();
    const auto values = x.to_vector();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto row = static_cast<Index>(i) / (length * d), j = static_cast<Index>(i) % d;
      T& most = want[static_cast<std::size_t>(row * d + j)];
      most = std::max(most, std::fabs(values[i]));
    }
    CHECK(largest_with(before, x).to_vector() == want);
  }
}

TEMPLATE_LIST_TEST_CASE(
    "largest_with: is NaN where a vector is NaN or infinite, wherever it stands", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                      -std::numeric_limits<T>::infinity()})
    for (const std::size_t at : {std::size_t{0}, std::size_t{3}, std::size_t{8}}) {
      std::vector<T> x(9, T(1));
      x[at] = bad;  // three vectors of three coordinates
      const auto c = largest_with(Tensor<T, B>::zeros({1, 3}), Tensor<T, B>::from({1, 3, 3}, x));
      for (std::size_t j = 0; j < 3; ++j) CHECK(std::isnan(c.to_vector()[j]) == (j == at % 3));
    }
}

TEST_CASE("require_writable: names the row and the coordinate that is too much") {
  CHECK_NOTHROW(require_writable("write", Tensor<float>::full({2, 3}, 5), 5.f));
  CHECK_THROWS_WITH(require_writable("write", Tensor<float>::from({2, 2}, {1, 2, 6, 4}), 5.f),
                    "[write] coordinate 0 of a vector of row 1 is 6: coefficients would overflow "
                    "above 5");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH(require_writable("write", Tensor<float>::from({1, 2}, {1, nan}), 5.f),
                    "[write] coordinate 1 of a vector of row 0 is not finite");
}
