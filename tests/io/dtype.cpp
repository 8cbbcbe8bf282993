// SPDX-License-Identifier: MIT
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <infty/io/dtype.hpp>

#include "support/catch.hpp"

using infty::BFloat16;
using infty::DType;
using infty::detail::Bool8;
using infty::detail::convert;
using infty::detail::Float16;

static_assert(infty::dtype_of<float>() == DType::F32 && infty::dtype_of<double>() == DType::F64);
static_assert(infty::dtype_of<bool>() == DType::BOOL &&
              infty::dtype_of<std::int8_t>() == DType::I8);
static_assert(infty::dtype_of<std::uint8_t>() == DType::U8);
static_assert(infty::dtype_of<std::int64_t>() == DType::I64);
static_assert(infty::dtype_of<unsigned long long>() == DType::U64);
static_assert(infty::dtype_of<infty::Index>() == DType::I64);
static_assert(!infty::StoredScalar<long double> && !infty::StoredScalar<void*>);
static_assert(!infty::StoredScalar<char> && !infty::StoredScalar<wchar_t> &&
              infty::StoredScalar<signed char>);

TEST_CASE("DType: every type has a name, a width and a stored type of that width") {
  for (const auto& entry : infty::detail::dtype_entries) {
    const auto type = infty::dtype_from_name(entry.name);
    REQUIRE(type);
    CHECK(infty::dtype_name(*type) == entry.name);
    const auto width = infty::detail::with_stored_type(
        *type, []<class S>(std::type_identity<S>) { return static_cast<infty::Index>(sizeof(S)); });
    CHECK(infty::dtype_bytes(*type) == width);
    CHECK(infty::dtype_is_float(*type) == (entry.name.find('F') != entry.name.npos));
  }
  CHECK_FALSE(infty::dtype_from_name("F8_E4M3"));
  CHECK_FALSE(infty::dtype_from_name("f32"));
  CHECK_FALSE(infty::dtype_from_name(""));
}

TEST_CASE("Float16: all 65,536 patterns, by the definition of binary16") {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const float value = Float16{static_cast<std::uint16_t>(i)};
    const int exponent = static_cast<int>((i >> 10U) & 31U);
    const auto fraction = static_cast<double>(i & 0x3FFU);
    const double sign = (i & 0x8000U) != 0 ? -1 : 1;
    REQUIRE(std::signbit(value) == (sign < 0));
    if (exponent == 31) {
      REQUIRE((fraction == 0 ? std::isinf(value) : std::isnan(value)));
    } else {
      const double expected =
          exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
      REQUIRE(static_cast<double>(value) == sign * expected);
    }
  }
}

TEMPLATE_TEST_CASE("convert: floats", "", float, double) {
  TestType to = 0;
  CHECK((convert(1.5, to) && to == TestType(1.5)));
  CHECK((convert(0.1F, to) && to == static_cast<TestType>(0.1F)));
  CHECK((convert(Float16{0xC000}, to) && to == -2));
  CHECK((convert(std::numeric_limits<double>::infinity(), to) && std::isinf(to)));
  CHECK((convert(std::numeric_limits<double>::quiet_NaN(), to) && std::isnan(to)));
  CHECK(convert(1e30, to));
  CHECK(convert(1e300, to) == std::is_same_v<TestType, double>);
  CHECK_FALSE(convert(std::int32_t{1}, to));
  CHECK_FALSE(convert(Bool8{1}, to));
}

TEST_CASE("convert: bfloat16, of every type of fractions and of no other") {
  BFloat16 to(0.F);
  CHECK((convert(1.5, to) && to == 1.5F));
  CHECK((convert(3.141592F, to) && to == 3.140625F));
  CHECK((convert(Float16{0xC000}, to) && to == -2.F));
  CHECK((convert(BFloat16(0.5F), to) && to == 0.5F));
  CHECK(
      (convert(std::numeric_limits<double>::infinity(), to) && std::isinf(static_cast<float>(to))));
  CHECK(
      (convert(std::numeric_limits<float>::quiet_NaN(), to) && std::isnan(static_cast<float>(to))));
  CHECK_FALSE(convert(3.4e38F, to));  // beyond the largest
  CHECK_FALSE(convert(1e300, to));
  CHECK_FALSE(convert(std::int32_t{1}, to));
  CHECK_FALSE(convert(Bool8{1}, to));
  std::int32_t whole = 0;
  CHECK_FALSE(convert(BFloat16(1.F), whole));
}

TEST_CASE("convert: integers, as long as they fit") {
  std::int8_t small = 0;
  CHECK((convert(std::int64_t{-128}, small) && small == -128));
  CHECK_FALSE(convert(std::int64_t{-129}, small));
  CHECK_FALSE(convert(std::uint8_t{128}, small));
  CHECK_FALSE(convert(1.0, small));
  std::uint64_t large = 0;
  CHECK_FALSE(convert(std::int8_t{-1}, large));
  std::int64_t wide = 0;
  CHECK_FALSE(convert(std::uint64_t{1} << 63U, wide));
  CHECK((convert(Bool8{1}, wide) && wide == 1));
  CHECK_FALSE(convert(Bool8{2}, wide));
}
