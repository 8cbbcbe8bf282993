// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <infty/autograd/variable.hpp>
#include <infty/core/number.hpp>
#include <infty/core/random.hpp>
#include <infty/core/tensor.hpp>

namespace infty::tests {

/// Numbers drawn evenly from [low, high).
template <class T, class B = EigenBackend>
Tensor<T, B> uniform_tensor(Shape shape, Random& random, double low = -1, double high = 1) {
  Tensor<T, B> out(shape);
  fill_uniform(out, low, high, random);
  return out;
}

/// A variable of such numbers that needs a gradient.
template <class T, class B = EigenBackend>
Variable<T, B> uniform_variable(Shape shape, Random& random, double low = -1, double high = 1) {
  return Variable<T, B>(uniform_tensor<T, B>(shape, random, low, high), true);
}

/// Largest difference, relative to the largest number expected (or 1, if that is larger);
/// infinity if sizes differ or something is NaN.
template <class T, class U>
double error(const std::vector<T>& got, const std::vector<U>& expected) {
  if (got.size() != expected.size()) return math::infinity<double>;
  double worst = 0, scale = 1;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double e = static_cast<double>(expected[i]);
    const double difference = std::abs(static_cast<double>(got[i]) - e);
    if (!math::is_finite(difference)) return math::infinity<double>;
    worst = std::max(worst, difference);
    scale = std::max(scale, std::abs(e));
  }
  return worst / scale;
}

}  // namespace infty::tests
