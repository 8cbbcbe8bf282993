// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include <infty/data/unicode_table.hpp>
#include <infty/io/json.hpp>

namespace infty {

/// What GPT-2's pattern tells apart: `\p{L}`, `\p{N}`, `\s` and the rest.
enum class CharacterClass { other, letter, number, space };

/// Finds the class of a code point; `other` for what is none.
inline CharacterClass character_class(std::uint32_t code) {
  const auto behind = std::upper_bound(std::begin(detail::unicode_borders),
                                       std::end(detail::unicode_borders), code << 2U | 3U);
  return code > 0x10FFFF ? CharacterClass::other : static_cast<CharacterClass>(behind[-1] & 3U);
}

namespace detail {

/// The code point of the well-formed UTF-8 sequence of `length` bytes that a text begins with.
inline std::uint32_t code_point(std::string_view text, std::size_t length) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  std::uint32_t code = length == 1 ? byte(0) : byte(0) & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = code << 6U | (byte(i) & 0x3FU);
  return code;
}

}  // namespace detail

/// The first character of a text: its bytes and its class. A byte that begins no UTF-8 sequence is
/// a character of the class `other`.
struct Character {
  std::size_t length;   ///< in bytes, 1 to 4
  CharacterClass kind;  ///< letter, number, space or other
};

/// Looks at the first character of a text that is not empty.
inline Character first_character(std::string_view text) {
  const auto lead = static_cast<std::uint32_t>(static_cast<unsigned char>(text[0]));
  if (lead < 0x80) {
    if ((lead | 0x20U) - 'a' < 26) return {1, CharacterClass::letter};
    if (lead - '0' < 10) return {1, CharacterClass::number};
    return {1, lead == ' ' || lead - '\t' < 5 ? CharacterClass::space : CharacterClass::other};
  }
  const std::size_t length = detail::utf8_sequence(text);
  if (length == 0) return {1, CharacterClass::other};
  return {length, character_class(detail::code_point(text, length))};
}

}  // namespace infty
