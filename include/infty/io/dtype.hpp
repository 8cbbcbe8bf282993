// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <infty/core/bfloat16.hpp>
#include <infty/core/config.hpp>
#include <infty/core/number.hpp>

namespace infty {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

/// The element types that infty reads and writes, by their names in safetensors.
enum class DType : std::uint8_t { BOOL, U8, I8, U16, I16, F16, BF16, U32, I32, F32, U64, I64, F64 };

namespace detail {

/// Integral types that are characters and no numbers.
template <class T>
concept CharacterType =
    std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
    std::same_as<T, char16_t> || std::same_as<T, char32_t>;

}  // namespace detail

/// A C++ type that has a DType of its own: float, double, BFloat16, bool and the integers, which
/// are no characters.
template <class T>
concept StoredScalar = std::same_as<T, float> || std::same_as<T, double> ||
                       std::same_as<T, BFloat16> || (std::integral<T> && !detail::CharacterType<T>);

namespace detail {

struct DTypeEntry {
  std::string_view name;
  Index bytes;
};

inline constexpr std::array<DTypeEntry, 13> dtype_entries{{{"BOOL", 1},
                                                           {"U8", 1},
                                                           {"I8", 1},
                                                           {"U16", 2},
                                                           {"I16", 2},
                                                           {"F16", 2},
                                                           {"BF16", 2},
                                                           {"U32", 4},
                                                           {"I32", 4},
                                                           {"F32", 4},
                                                           {"U64", 8},
                                                           {"I64", 8},
                                                           {"F64", 8}}};

/// IEEE 754 binary16, as stored.
struct Float16 {
  std::uint16_t bits;

  /// Exact.
  operator float() const {
    const auto sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
    const std::uint32_t exponent = (bits >> 10U) & 31U, fraction = bits & 0x3FFU;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13U));
    if (exponent != 0)
      return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (fraction << 13U));
    return std::copysign(static_cast<float>(fraction) * 0x1p-24F, std::bit_cast<float>(sign));
  }
};

/// One byte that may be 0 or 1, as stored.
struct Bool8 {
  std::uint8_t bits;
};

/// Calls f(std::type_identity<S>) with the type S that an element of `type` is stored as.
template <class F>
decltype(auto) with_stored_type(DType type, F&& f) {
  switch (type) {
    case DType::BOOL:
      return f(std::type_identity<Bool8>{});
    case DType::U8:
      return f(std::type_identity<std::uint8_t>{});
    case DType::I8:
      return f(std::type_identity<std::int8_t>{});
    case DType::U16:
      return f(std::type_identity<std::uint16_t>{});
    case DType::I16:
      return f(std::type_identity<std::int16_t>{});
    case DType::F16:
      return f(std::type_identity<Float16>{});
    case DType::BF16:
      return f(std::type_identity<BFloat16>{});
    case DType::U32:
      return f(std::type_identity<std::uint32_t>{});
    case DType::I32:
      return f(std::type_identity<std::int32_t>{});
    case DType::F32:
      return f(std::type_identity<float>{});
    case DType::U64:
      return f(std::type_identity<std::uint64_t>{});
    case DType::I64:
      return f(std::type_identity<std::int64_t>{});
    case DType::F64:
      break;
  }
  return f(std::type_identity<double>{});
}

/// Converts one stored element; false if T cannot hold it. Fractions never become integers nor the
/// other way round; what is narrower is rounded, but a finite number never becomes infinite.
template <class T, class S>
bool convert(S from, T& to) {
  if constexpr (std::same_as<S, Float16> || std::same_as<S, BFloat16>) {
    return convert(static_cast<float>(from), to);
  } else if constexpr (std::same_as<S, Bool8>) {
    return from.bits <= 1 && convert(from.bits, to);
  } else if constexpr (std::floating_point<S> !=
                       (std::floating_point<T> || std::same_as<T, BFloat16>)) {
    return false;
  } else if constexpr (std::same_as<T, BFloat16>) {
    to = BFloat16(from);
    return math::is_finite(static_cast<float>(to)) || !math::is_finite(from);
  } else if constexpr (std::floating_point<T>) {
    if (std::abs(static_cast<double>(from)) >
            static_cast<double>((std::numeric_limits<T>::max)()) &&
        math::is_finite(from))
      return false;
    to = static_cast<T>(from);
    return true;
  } else {
    if (!std::in_range<T>(from)) return false;
    to = static_cast<T>(from);
    return true;
  }
}

}  // namespace detail

/// Returns the name in a safetensors header, such as "F32".
constexpr std::string_view dtype_name(DType type) {
  return detail::dtype_entries[static_cast<std::size_t>(type)].name;
}

/// Returns the bytes of one element.
constexpr Index dtype_bytes(DType type) {
  return detail::dtype_entries[static_cast<std::size_t>(type)].bytes;
}

/// Returns whether elements are floating-point numbers.
constexpr bool dtype_is_float(DType type) {
  return type == DType::F16 || type == DType::BF16 || type == DType::F32 || type == DType::F64;
}

/// Finds the type of that name, nothing if infty does not know it.
constexpr std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < detail::dtype_entries.size(); ++i)
    if (detail::dtype_entries[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

/// Returns the DType of a C++ type.
template <StoredScalar T>
constexpr DType dtype_of() {
  if constexpr (std::same_as<T, bool>) {
    return DType::BOOL;
  } else if constexpr (std::floating_point<T>) {
    return sizeof(T) == 4 ? DType::F32 : DType::F64;
  } else if constexpr (std::same_as<T, BFloat16>) {
    return DType::BF16;
  } else {
    constexpr std::array<DType, 4> of_unsigned{DType::U8, DType::U16, DType::U32, DType::U64};
    constexpr std::array<DType, 4> of_signed{DType::I8, DType::I16, DType::I32, DType::I64};
    constexpr auto log2 = static_cast<std::size_t>(std::countr_zero(sizeof(T)));
    return std::unsigned_integral<T> ? of_unsigned[log2] : of_signed[log2];
  }
}

}  // namespace infty
