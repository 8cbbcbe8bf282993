// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// Largest difference between the gradients of a scalar function and its central differences,
/// over every element of every input, relative to the largest gradient of that input (or 1, if
/// that is larger). `function()` computes the scalar from the inputs as they stand; it must be
/// deterministic. Inputs are left as they were.
template <class T, class B, class Function>
  requires std::invocable<Function&>
T gradient_check(Function function, std::vector<Variable<T, B>> inputs, T step = T(1e-5)) {
  for (auto& input : inputs) {
    input.set_requires_grad(true);
    input.zero_grad();
  }
  {
    Tape tape;
    const auto y = function();
    if (y.requires_grad()) tape.backward(y);  // or gradients that are missing are zero
  }
  T worst = 0;
  for (auto& input : inputs) {
    const std::vector<T> gradient = input.grad().to_vector();
    std::vector<T> x = input.value().to_vector();
    T scale = 1;
    for (const T g : gradient) scale = (std::max)(scale, std::abs(g));
    const auto at = [&](std::size_t i, T value) {
      const T before = std::exchange(x[i], value);
      B::from_host(input.value().data(), x.data(), input.size());
      const auto guard = no_grad();
      const T result = function().value().item();
      x[i] = before;
      B::from_host(input.value().data(), x.data(), input.size());
      return result;
    };
    for (std::size_t i = 0; i < x.size(); ++i) {
      const T numeric = (at(i, x[i] + step) - at(i, x[i] - step)) / (2 * step);
      worst = (std::max)(worst, std::abs(numeric - gradient[i]) / scale);
      if (!(math::is_finite(numeric) && math::is_finite(gradient[i]))) return math::infinity<T>;
    }
  }
  return worst;
}

}  // namespace infty
