// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/number.hpp>
#include <infty/testing/difference.hpp>
#include <infty/train/named_parameters.hpp>

namespace infty {

namespace testing::detail {

/// Has parameters need gradients, and be as they were at its end.
template <class T, class B>
class Checked {
 public:
  explicit Checked(std::vector<NamedParameter<T, B>>& inputs) : inputs_(inputs) {
    for (auto& [name, input] : inputs_) {
      values_.push_back(input.value().to_vector());
      learned_.push_back(input.requires_grad());
    }
    for (auto& [name, input] : inputs_) {
      input.set_requires_grad(true);
      input.zero_grad();
    }
  }
  Checked(const Checked&) = delete;
  Checked& operator=(const Checked&) = delete;
  ~Checked() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      auto& input = inputs_[i].variable;
      B::from_host(input.value().data(), values_[i].data(), input.size());
      if (learned_[i]) continue;
      input.zero_grad();
      input.set_requires_grad(false);
    }
  }

 private:
  std::vector<NamedParameter<T, B>>& inputs_;
  std::vector<std::vector<T>> values_;
  std::vector<bool> learned_;
};

}  // namespace testing::detail

/// Largest difference between the gradients of a scalar function and its central differences,
/// over every element of every parameter, relative to the largest gradient of that parameter (or 1,
/// if that is larger), with words on where it was. `function()` computes the scalar from the
/// parameters as they stand; it must be deterministic. Parameters are left as they were, also where
/// it throws, with the gradients of those that need one.
template <class T, class B, class Function>
  requires std::invocable<Function&>
Difference<T> gradient_check(Function function, std::vector<NamedParameter<T, B>> inputs,
                             T step = T(1e-5)) {
  const testing::detail::Checked<T, B> checked(inputs);
  {
    Tape tape;
    const auto y = function();
    if (y.requires_grad()) tape.backward(y);  // or gradients that are missing are zero
  }
  std::vector<std::vector<T>> gradients;
  for (auto& [name, input] : inputs) gradients.push_back(input.grad().to_vector());
  Difference<T> worst;
  for (auto& named : inputs) {
    auto& input = named.variable;
    const std::vector<T>& gradient = gradients[static_cast<std::size_t>(&named - inputs.data())];
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
      const bool finite = math::is_finite(numeric) && math::is_finite(gradient[i]);
      const T difference = finite ? std::abs(numeric - gradient[i]) / scale : math::infinity<T>;
      if (difference > worst.largest) {
        // A statement of its own: nvcc loses a name that is initialised inside two pairs of braces.
        const testing::detail::Sides sides{
            .what = named.name, .left = "by backward", .right = "by central differences"};
        worst = {difference, testing::detail::words_on(sides, input.shape(), static_cast<Index>(i),
                                                       static_cast<double>(gradient[i]),
                                                       static_cast<double>(numeric))};
      }
      if (!finite) return worst;
    }
  }
  return worst;
}

/// The same of inputs without names, which are called by their numbers.
template <class T, class B, class Function>
  requires std::invocable<Function&>
Difference<T> gradient_check(Function function, const std::vector<Variable<T, B>>& inputs,
                             T step = T(1e-5)) {
  std::vector<NamedParameter<T, B>> named;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    named.push_back({"input " + std::to_string(i), inputs[i]});
  return gradient_check(std::move(function), std::move(named), step);
}

}  // namespace infty
