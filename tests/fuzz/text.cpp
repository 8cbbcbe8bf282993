// SPDX-License-Identifier: MIT
#include <string>
#include <string_view>
#include <vector>

#include <infty/data/text.hpp>
#include <infty/data/unicode.hpp>
#include <infty/data/vocabulary.hpp>

#include "fuzz/fuzz.hpp"

// Any bytes as a text: its tokens are the text, and a vocabulary of it encodes and decodes it.

namespace infty::fuzz {

namespace {

void check_characters(std::string_view text) {
  Index characters = 0;
  for (std::string_view rest = text; !rest.empty(); ++characters) {
    const Character first = first_character(rest);
    const std::size_t sequence = detail::utf8_sequence(rest);
    check(first.length == std::max<std::size_t>(sequence, 1),
          "a character is a sequence or a byte");
    check(sequence > 0 || first.kind == CharacterClass::other, "a byte of none has no class");
    rest.remove_prefix(first.length);
  }
  check(count_characters(text) == characters, "characters are counted");
  const std::size_t prefix = detail::utf8_prefix(text);
  check(prefix == text.size() || detail::utf8_sequence(text.substr(prefix)) == 0,
        "the first byte that is no UTF-8 is found");
  check(detail::unescaped(detail::escaped(text)) == text, "what is escaped comes back");
}

}  // namespace

void run(std::string_view bytes) {
  check_characters(bytes);
  for (const TextUnit unit : {TextUnit::word, TextUnit::character, TextUnit::byte}) {
    std::string together;
    Index count = 0;
    for_each_token(bytes, unit, [&](std::string_view token) {
      check(!token.empty(), "no token is empty");
      if (unit == TextUnit::word)
        for (const char c : token)
          check(c != '\n' && !detail::is_space_in_line(c), "no space is in a word");
      together += token;
      ++count;
    });
    check(unit == TextUnit::word || together == bytes, "the tokens are the text");
    TokenCounts counts;
    counts.add_text(bytes, unit);
    check(counts.total() == count, "every token is counted");
    const Vocabulary vocabulary(counts);
    const auto ids = vocabulary.encode(bytes, unit);
    check(static_cast<Index>(ids.size()) == count, "every token has a number");
    const auto text = vocabulary.decode(ids, unit);
    check(unit == TextUnit::word ? vocabulary.encode(text, unit) == ids : text == bytes,
          "the text comes back");
    const Vocabulary small(counts, {.min_count = 2, .max_size = 3});
    check(small.size() <= 3 && small.encode(bytes, unit).size() == ids.size(),
          "a word that is left out is unknown");
  }
}

std::vector<std::string> seeds() {
  using namespace std::string_literals;
  return {" = Title = \n \n The cat , the <unk> .\n <eos> end",
          "na\xC3\xAFve \xE4\xB8\x80\xF0\x9F\x98\x80\n",
          "\0\x01\x7F\\x41 \xC0\x80\xED\xA0\x80\xF4\x90\x80\x80\xFF"s, " \t\r\v\f\n\n "};
}

}  // namespace infty::fuzz
