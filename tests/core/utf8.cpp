// SPDX-License-Identifier: MIT
#include <cstddef>
#include <string>
#include <string_view>

#include <infty/core/utf8.hpp>

#include "support/catch.hpp"

TEST_CASE("character_at: the sequence that a byte belongs to, or the byte alone") {
  const std::string_view text = "aé日🎉z";
  const std::string_view characters[] = {"a", "é", "日", "🎉", "z"};
  std::size_t at = 0;
  for (const std::string_view character : characters)
    for (std::size_t i = 0; i < character.size(); ++i)
      CHECK(infty::detail::character_at(text, at++) == character);
  CHECK(at == text.size());
  CHECK(infty::detail::character_at("a\x80", 1) == "\x80");
  CHECK(infty::detail::character_at("日\xE6\x97", 4) == "\x97");
}

TEST_CASE("printable: nothing unprintable and nothing long reaches a message") {
  CHECK(infty::detail::printable("a.b\n\x1b[2J\xFF") == "'a.b\?\?[2J?'");
  CHECK(infty::detail::printable(std::string(1000, 'x')) == "'" + std::string(80, 'x') + "...'");
  // Other writing than Latin is shown as it is, whole characters; but nothing that is invisible or
  // turns the direction of what stands around it.
  CHECK(infty::detail::printable("日本語 é 🎉") == "'日本語 é 🎉'");
  std::string many;
  for (int i = 0; i < 80; ++i) many += "語";
  CHECK(infty::detail::printable(many) == "'" + many + "'");
  CHECK(infty::detail::printable(many + "本") == "'" + many + "...'");
  CHECK(infty::detail::printable("\u202Ea\u200B\u2066b\uFEFF\u0085\u061C\U000E0041") ==
        "'?a\?\?b\?\?\?\?'");
  CHECK(infty::detail::printable("\u00ADa\u034F\u180E\u3164b\U0001D173\uFFA0") ==
        "'?a\?\?\?b\?\?'");
  CHECK(infty::detail::printable("\u2764\uFE0F") == "'\u2764\uFE0F'");
  CHECK(infty::detail::printable("\xE6\x97") == "'\?\?'");
  CHECK(infty::detail::printable("\xED\xA0\x80") == "'\?\?\?'");  // a surrogate
}
