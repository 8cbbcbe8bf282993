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

/// The first character of a text: its bytes and its class. A byte that begins no UTF-8 sequence is
/// a character of the class `other`.
struct Character {
  std::size_t length;   ///< in bytes, 1 to 4
  CharacterClass kind;  ///< letter, number, space or other
};

/// Looks at the first character of a text that is not empty.
inline Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) {
    if ((lead | 0x20U) - 'a' < 26) return {1, CharacterClass::letter};
    if (lead - '0' < 10) return {1, CharacterClass::number};
    return {1, lead == ' ' || lead - '\t' < 5 ? CharacterClass::space : CharacterClass::other};
  }
  const std::size_t length = detail::utf8_sequence(text);
  if (length == 0) return {1, CharacterClass::other};
  std::uint32_t code = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = code << 6U | (byte(i) & 0x3FU);
  return {length, character_class(code)};
}

}  // namespace infty
