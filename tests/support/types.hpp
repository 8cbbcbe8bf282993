// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <type_traits>

#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>

#if defined(INFTY_TEST_CUDA)
#include <infty/thrust/cuda.hpp>
#elif defined(INFTY_TEST_THRUST)
#include <infty/thrust/host.hpp>
#endif

#include "support/blocks_handed_out.hpp"

namespace infty::tests {

/// One line of the list that typed tests run over: a scalar on a backend.
template <class Scalar, class Backend>
struct On {
  using T = Scalar;
  using B = Backend;
};

/// `TEMPLATE_LIST_TEST_CASE("name", "", infty::tests::Types)`, with TestType::T and TestType::B.
/// One source is compiled once for each of these lists: the build says which.
#if defined(INFTY_TEST_CUDA)
using Types = std::tuple<On<float, ThrustBackend<Cuda>>, On<double, ThrustBackend<Cuda>>>;
#elif defined(INFTY_TEST_THRUST) && defined(INFTY_TEST_SCALAR)
using Types = std::tuple<On<INFTY_TEST_SCALAR, ThrustBackend<Omp>>>;
#elif defined(INFTY_TEST_THRUST)
// The two systems share all of their source: each scalar on one of them is every line of it.
using Types = std::tuple<On<float, ThrustBackend<Omp>>, On<double, ThrustBackend<Cpp>>>;
#elif defined(INFTY_TEST_SCALAR)
using Types = std::tuple<On<INFTY_TEST_SCALAR, EigenBackend>>;
#else
using Types = std::tuple<On<float, EigenBackend>, On<double, EigenBackend>>;
#endif

#if defined(INFTY_TEST_CUDA) || (defined(INFTY_TEST_THRUST) && defined(INFTY_THRUST_FENCE))
/// Sees to it that a typed test which never uses its backend is found out.
inline const bool backend_is_counted = [] {
#if defined(INFTY_TEST_CUDA)
  blocks_handed_out.by_backend = [] { return DevicePool::instance().statistics().blocks; };
#else
  blocks_handed_out.by_backend = [] { return infty::detail::Fence::instance().blocks(); };
#endif
  blocks_handed_out.by_host = [] { return HostPool::instance().statistics().blocks; };
  return true;
}();
#endif

/// What a few hundred rounded operations on numbers around 1 may be off: some 100 units in the
/// last place, 6e-8 in float and 1.1e-16 in double.
template <class T>
inline constexpr double tolerance = std::is_same_v<T, float> ? 1e-5 : 2e-14;

/// Whether a product of a batch has the bits of its matrices' products one by one. cuBLAS, which
/// chooses an algorithm by all of the sizes, does not promise that.
template <class B>
inline constexpr bool same_bits_in_any_batch = true;
#if defined(INFTY_TEST_CUDA)
template <>
inline constexpr bool same_bits_in_any_batch<ThrustBackend<Cuda>> = false;
#endif

}  // namespace infty::tests
