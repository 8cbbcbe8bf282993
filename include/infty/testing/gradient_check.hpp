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
#include <infty/core/random.hpp>
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
      stored_.push_back(input.stored_in_bfloat16() != nullptr);
      input.value().data();  // what may not be written throws before anything is
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
      if (stored_[i]) input.store_in_bfloat16();
    }
  }

 private:
  std::vector<NamedParameter<T, B>>& inputs_;
  std::vector<std::vector<T>> values_;
  std::vector<bool> learned_, stored_;
};

}  // namespace testing::detail

namespace testing::detail {

/// The gradients of a scalar function by backward, and its differences along any direction.
template <class T, class B, class Function>
class GradientCheck {
 public:
  GradientCheck(Function& function, std::vector<NamedParameter<T, B>>& inputs, T step, T least = 1)
      : function_(function), step_(step), least_(least) {
    {
      Tape tape;
      const auto y = function_();
      if (y.requires_grad()) tape.backward(y);  // or gradients that are missing are zero
    }
    for (auto& [name, input] : inputs) gradients_.push_back(input.grad().to_vector());
  }

  /// By every element of input i.
  Difference<T> of_elements(NamedParameter<T, B>& named, std::size_t i) const {
    Difference<T> worst;
    const std::vector<T>& gradient = gradients_[i];
    std::vector<T> direction(gradient.size());
    for (std::size_t at = 0; at < gradient.size(); ++at) {
      direction[at] = 1;
      const T numeric = along(named.variable, direction, step_);
      direction[at] = 0;
      const T apart = relative(numeric, gradient[at], gradient);
      if (apart > worst.largest) worst = {apart, words_of(named, at, gradient[at], numeric)};
      if (apart == math::infinity<T>) break;
    }
    return worst;
  }

  /// By two random directions in which no element has less than half the weight of 1.
  Difference<T> of_directions(NamedParameter<T, B>& named, std::size_t i, Random& random) const {
    Difference<T> worst;
    const std::vector<T>& gradient = gradients_[i];
    for (int turn = 0; turn < 2 && !gradient.empty(); ++turn) {
      std::vector<T> direction;
      T expected = 0;
      for (const T g : gradient) {
        const auto weight = static_cast<T>(.5 + random.uniform());
        direction.push_back(random.uniform() < .5 ? -weight : weight);
        expected += g * direction.back();
      }
      // As far as one element is moved by itself: the function is curved in all of them.
      const T step = step_ / std::sqrt(static_cast<T>(gradient.size()));
      const T apart = relative(along(named.variable, direction, step), expected, gradient);
      worst.largest = (std::max)(worst.largest, 2 * apart);
    }
    return worst;
  }

 private:
  /// (f(x + step direction) - f(x - step direction)) / (2 step)
  T along(Variable<T, B>& input, const std::vector<T>& direction, T step) const {
    const std::vector<T> x = input.value().to_vector();
    const auto at = [&](T shift) {
      std::vector<T> moved = x;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (direction[i] != 0) moved[i] += shift * direction[i];
      B::from_host(input.value().data(), moved.data(), input.size());
      const auto guard = no_grad();
      return function_().value().item();
    };
    const T numeric = (at(step) - at(-step)) / (2 * step);
    B::from_host(input.value().data(), x.data(), input.size());
    return numeric;
  }

  /// Infinity for what is no number.
  T relative(T numeric, T expected, const std::vector<T>& gradient) const {
    T scale = least_;
    for (const T g : gradient) scale = (std::max)(scale, std::abs(g));
    const bool finite = math::is_finite(numeric) && math::is_finite(expected);
    return finite ? std::abs(numeric - expected) / scale : math::infinity<T>;
  }

  static std::string words_of(const NamedParameter<T, B>& named, std::size_t at, T by_backward,
                              T numeric) {
    // A statement of its own: nvcc loses a name that is initialised inside two pairs of braces.
    const Sides sides{.what = named.name, .left = "by backward", .right = "by central differences"};
    return words_on(sides, named.variable.shape(), static_cast<Index>(at),
                    static_cast<double>(by_backward), static_cast<double>(numeric));
  }

  Function& function_;
  T step_, least_;
  std::vector<std::vector<T>> gradients_;
};

/// "input 0", "input 1" and so on.
template <class T, class B>
std::vector<NamedParameter<T, B>> numbered(const std::vector<Variable<T, B>>& inputs) {
  std::vector<NamedParameter<T, B>> named;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    named.push_back({"input " + std::to_string(i), inputs[i]});
  return named;
}

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
  const testing::detail::GradientCheck<T, B, Function> check(function, inputs, step);
  Difference<T> worst;
  for (std::size_t i = 0; i < inputs.size() && worst.largest < math::infinity<T>; ++i)
    if (auto found = check.of_elements(inputs[i], i); found.largest > worst.largest)
      worst = std::move(found);
  return worst;
}

/// Says what `gradient_check` says at four evaluations a parameter, whatever its size: along two
/// random directions each, as PyTorch's `gradcheck` does in its fast mode. An element that is off
/// by more than `allowed` is seen, unless others make up for it in both of them. A parameter in
/// which one may be is looked at element by element. Differences are relative to the largest
/// gradient of a parameter, or to `least` if that is larger.
/// @return  what is over `allowed` is `gradient_check`'s difference, with words on where it was
template <class T, class B, class Function>
  requires std::invocable<Function&>
Difference<T> fast_gradient_check(Function function, std::vector<NamedParameter<T, B>> inputs,
                                  T allowed, T step = T(1e-5), T least = 1) {
  const testing::detail::Checked<T, B> checked(inputs);
  const testing::detail::GradientCheck<T, B, Function> check(function, inputs, step, least);
  Difference<T> worst;
  Random random(1);
  for (std::size_t i = 0; i < inputs.size() && worst.largest < math::infinity<T>; ++i) {
    auto found = check.of_directions(inputs[i], i, random);
    if (!(found.largest <= allowed)) found = check.of_elements(inputs[i], i);
    if (found.largest > worst.largest) worst = std::move(found);
  }
  return worst;
}

/// The same of inputs without names, which are called by their numbers.
template <class T, class B, class Function>
  requires std::invocable<Function&>
Difference<T> gradient_check(Function function, const std::vector<Variable<T, B>>& inputs,
                             T step = T(1e-5)) {
  return gradient_check(std::move(function), testing::detail::numbered(inputs), step);
}

/// The same of inputs without names, which are called by their numbers.
template <class T, class B, class Function>
  requires std::invocable<Function&>
Difference<T> fast_gradient_check(Function function, const std::vector<Variable<T, B>>& inputs,
                                  T allowed, T step = T(1e-5), T least = 1) {
  return fast_gradient_check(std::move(function), testing::detail::numbered(inputs), allowed, step,
                             least);
}

}  // namespace infty
