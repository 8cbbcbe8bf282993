// SPDX-License-Identifier: MIT
#include <cstdint>
#include <string>

#include <infty/data/lower_case.hpp>

#include "support/catch.hpp"

using infty::lower_case;

TEST_CASE("lower case: letters of any script, all else as it is", "[data]") {
  CHECK(lower_case("") == "");
  CHECK(lower_case("A z-9 \t@[`{") == "a z-9 \t@[`{");
  CHECK(lower_case("ÀÉÎÕÜ ŸŽ Я Ё Ϣ") == "àéîõü ÿž я ё ϣ");
  CHECK(lower_case("ß ı \u212A \u2126") == "ß ı k ω");
  CHECK(lower_case("İ") == "i\u0307");
  CHECK(lower_case("\U00010400\U0001E921\U00016E5F") == "\U00010428\U0001E943\U00016E7F");
}

TEST_CASE("lower case: a sigma that ends a word", "[data]") {
  CHECK(lower_case("ΟΔΟΣ ΣΟΦΟΣ. Σ ΑΣ1") == "οδος σοφος. σ ας1");
}

TEST_CASE("lower case: bytes that are no UTF-8 stay", "[data]") {
  const std::string bytes("A\xFF\xC3 \x80\xED\xA0\x80\0B", 9);
  CHECK(lower_case(bytes) == std::string("a\xFF\xC3 \x80\xED\xA0\x80\0b", 9));
}

TEST_CASE("lower case: every code point becomes what Python makes of it", "[data]") {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a over what changes
  for (std::uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    infty::detail::append_utf8(text, code);
    const std::string lower = lower_case(text);
    if (lower == text) continue;
    for (const char c : text + '>' + lower + '\n')
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  CHECK(hash == 17382423148801894532U);  // what tests/data/make_lower_case_table.py --hash prints
}
