// SPDX-License-Identifier: MIT
// Compiled with -ffast-math, too, by tests/CMakeLists.txt: so no number here is compared but by
// bits.
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include <infty/core/finite.hpp>
#include <infty/core/number.hpp>
#include <infty/eigen/backend.hpp>

#include "support/catch.hpp"

namespace {

using infty::Index;

/// What stands in memory as these bits.
template <class T>
std::vector<T> of_words(
    const std::vector<typename infty::math::detail::FloatBits<T>::Unsigned>& words) {
  std::vector<T> out(words.size());
  std::memcpy(out.data(), words.data(), words.size() * sizeof(T));
  return out;
}

/// Zeros, the least and the largest denormals, the least and the largest normal numbers, 1, -1.
template <class T>
std::vector<T> finite_numbers() {
  if constexpr (std::is_same_v<T, float>)
    return of_words<T>({0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000,
                        0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0xBF800000});
  else
    return of_words<T>({0, 0x8000000000000000, 1, 0x8000000000000001, 0x000FFFFFFFFFFFFF,
                        0x800FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF,
                        0xFFEFFFFFFFFFFFFF, 0x3FF0000000000000, 0xBFF0000000000000});
}
template <class T>
std::vector<T> infinities() {
  if constexpr (std::is_same_v<T, float>)
    return of_words<T>({0x7F800000, 0xFF800000});
  else
    return of_words<T>({0x7FF0000000000000, 0xFFF0000000000000});
}
/// Quiet and signalling ones of both signs.
template <class T>
std::vector<T> nans() {
  if constexpr (std::is_same_v<T, float>)
    return of_words<T>({0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF});
  else
    return of_words<T>({0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001,
                        0xFFF0000000000001, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF});
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

}  // namespace

TEMPLATE_TEST_CASE("is_finite, is_nan: by the bits, whatever the flags", "", float, double) {
  using T = TestType;
  for (const T& x : finite_numbers<T>()) {
    CHECK(infty::math::is_finite(x));
    CHECK(infty::math::is_finite_at(&x));
    CHECK_FALSE(infty::math::is_nan(x));
    CHECK_FALSE(infty::math::is_nan_at(&x));
  }
  for (const T& x : infinities<T>()) {
    CHECK_FALSE(infty::math::is_finite(x));
    CHECK_FALSE(infty::math::is_finite_at(&x));
    CHECK_FALSE(infty::math::is_nan(x));
  }
  for (const T& x : nans<T>()) {
    CHECK_FALSE(infty::math::is_finite(x));
    CHECK_FALSE(infty::math::is_finite_at(&x));
    CHECK(infty::math::is_nan(x));
    CHECK(infty::math::is_nan_at(&x));
  }
  const T infinite = infty::math::infinity<T>, nan = infty::math::not_a_number<T>;
  CHECK(same_bits(infinite, infinities<T>()[0]));
  CHECK(same_bits(nan, nans<T>()[0]));
}

TEMPLATE_TEST_CASE("is_finite, is_nan: of what was just computed", "", float, double) {
  using T = TestType;
  const volatile T zero = 0, one = 1;
  const T infinite = one / zero, nan = zero / zero;
  CHECK_FALSE(infty::math::is_finite(infinite));
  CHECK_FALSE(infty::math::is_nan(infinite));
  CHECK_FALSE(infty::math::is_finite(nan));
  CHECK(infty::math::is_nan(nan));
}

TEMPLATE_TEST_CASE("all_finite: one that is not, wherever it stands", "", float, double) {
  using T = TestType;
  const auto good = finite_numbers<T>();
  auto wrong = nans<T>();
  for (const T& x : infinities<T>()) wrong.push_back(x);
  for (const Index n : {1, 2, 15, 16, 17, 100, 5000}) {
    infty::Tensor<T, infty::EigenBackend> x({n});
    for (Index i = 0; i < n; ++i) x.data()[i] = good[static_cast<std::size_t>(i) % good.size()];
    CHECK(infty::detail::all_finite(x));
    for (const Index at : {Index{0}, n / 2, n - 1})
      for (const T& bad : wrong) {
        const T before = x.data()[at];
        x.data()[at] = bad;
        CHECK_FALSE(infty::detail::all_finite(x));
        x.data()[at] = before;
      }
  }
}
