// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

// Catch2 counts by __COUNTER__, of which Clang 22 says that C++ has none.
#if defined(__clang__)
#if __has_warning("-Wc2y-extensions")
#pragma clang diagnostic ignored "-Wc2y-extensions"
#endif
#endif

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

// Catch2 v2 keeps Approx in an inner namespace, v3 does not lift it to the global one.
// The base of listeners has lost a word from its name.
#if __has_include(<catch2/catch_all.hpp>)
using Catch::Approx;
namespace Catch {
using TestEventListenerBase = EventListenerBase;
}
#else
namespace Catch {
using Detail::Approx;
}
#endif

// On a backend that is not Eigen's only typed tests are run: there the others are templates that
// nobody instantiates, of which a compiler checks the text and makes no code.
#if defined(INFTY_TEST_TYPED_ALONE)
#define INFTY_TEST_JOINED(name, count) name##count
#define INFTY_TEST_NAME(count) INFTY_TEST_JOINED(left_out_, count)
#undef TEST_CASE
#undef TEMPLATE_TEST_CASE
#define TEST_CASE(...) \
  template <class>     \
  [[maybe_unused]] static void INFTY_TEST_NAME(__COUNTER__)()
#define TEMPLATE_TEST_CASE(...) \
  template <class TestType>     \
  [[maybe_unused]] static void INFTY_TEST_NAME(__COUNTER__)()
#endif

namespace infty::tests {

/// The seed of every random number in the tests; support/main.cpp prints it.
inline constexpr std::uint64_t seed = 20220522;

}  // namespace infty::tests
