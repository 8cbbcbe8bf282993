// SPDX-License-Identifier: MIT
#include <cstdint>
#include <string>
#include <string_view>

#include <infty/data/unicode.hpp>

#include "support/catch.hpp"

using infty::character_class;
using infty::CharacterClass;
using infty::first_character;

TEST_CASE("character_class: letters, numbers, white space, and the rest") {
  for (const std::uint32_t letter : {0x41u, 0x7Au, 0xAAu, 0xE9u, 0x3B1u, 0x5D0u, 0x4E00u, 0xAC00u,
                                     0x1D400u, 0x20000u, 0x2B0u, 0x1C5u})
    CHECK(character_class(letter) == CharacterClass::letter);
  for (const std::uint32_t number :
       {0x30u, 0x39u, 0xB2u, 0xBDu, 0x660u, 0x2160u, 0x3007u, 0x1D7CEu})
    CHECK(character_class(number) == CharacterClass::number);
  for (const std::uint32_t space :
       {0x09u, 0x0Du, 0x20u, 0x85u, 0xA0u, 0x1680u, 0x2003u, 0x2028u, 0x202Fu, 0x205Fu, 0x3000u})
    CHECK(character_class(space) == CharacterClass::space);
  // controls, marks, punctuation, symbols, private use, surrogates, and what is no code point
  for (const std::uint32_t other : {0x00u, 0x1Cu, 0x2Du, 0x5Fu, 0x7Fu, 0x200Bu, 0x301u, 0x1F600u,
                                    0xE000u, 0xD800u, 0xFEFFu, 0x10FFFFu, 0x110000u, 0xFFFFFFFFu})
    CHECK(character_class(other) == CharacterClass::other);
}

TEST_CASE("first_character: agrees with the table, and takes bytes that are no UTF-8 as others") {
  for (std::uint32_t code = 0; code < 128; ++code) {
    const auto first = first_character(std::string(2, static_cast<char>(code)));
    REQUIRE(first.length == 1);
    REQUIRE(first.kind == character_class(code));
  }
  const auto is = [](std::string_view text, std::size_t length, CharacterClass kind) {
    const auto first = first_character(text);
    return first.length == length && first.kind == kind;
  };
  CHECK(is("éa", 2, CharacterClass::letter));
  CHECK(is("三a", 3, CharacterClass::letter));
  CHECK(is("½", 2, CharacterClass::number));
  CHECK(is("𝟎", 4, CharacterClass::number));
  CHECK(is("\u3000", 3, CharacterClass::space));
  CHECK(is("😀", 4, CharacterClass::other));
  for (const std::string_view bad :
       {"\xFFz", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\x80", "\xF0\x9F"})
    CHECK(is(bad, 1, CharacterClass::other));
}
