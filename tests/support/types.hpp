// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <type_traits>

#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>

namespace infty::tests {

/// One line of the list that typed tests run over: a scalar on a backend.
template <class Scalar, class Backend>
struct On {
  using T = Scalar;
  using B = Backend;
};

/// `TEMPLATE_LIST_TEST_CASE("name", "", infty::tests::Types)`, with TestType::T and TestType::B.
using Types = std::tuple<On<float, EigenBackend>, On<double, EigenBackend>>;

/// What a few hundred rounded operations on numbers around 1 may be off: some 100 units in the
/// last place, 6e-8 in float and 1.1e-16 in double.
template <class T>
inline constexpr double tolerance = std::is_same_v<T, float> ? 1e-5 : 2e-14;

}  // namespace infty::tests
