// SPDX-License-Identifier: MIT
// The tokens of a text's parts are those of the text, in words, characters, bytes and byte pairs;
// and byte pairs are learnt from either alike.

#include "../../examples/support/text_parts.hpp"

#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <infty/data/byte_pair_encoding.hpp>
#include <infty/data/byte_pair_learning.hpp>
#include <infty/data/text.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

namespace text_parts_tests {

// Words, breaks and what GPT-2's pattern looks at around them, drawn.
std::string drawn_text(std::size_t bytes, unsigned seed) {
  const std::vector<std::string> pieces{
      "foo",   "Bar",  " ",     "  ",       "\n",           "\n\n", "\r\n", "\t",
      "don't", "'ll",  "12",    "\xC2\xA0", "\xE3\x80\x80", "é",    "。",   "<|endoftext|>",
      "\xFF",  "x\ny", "a\n's", ".",        " \n a",        "\n "};
  std::mt19937 draw(seed);
  std::string text;
  while (text.size() < bytes) text += pieces[draw() % pieces.size()];
  return text;
}

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  support::for_each_part(text, [&](std::string_view part) { parts.emplace_back(part); });
  return parts;
}

TEST_CASE("text_parts: the tokens of the parts are those of the text") {
  const std::string text = drawn_text((std::size_t{5} << 20) / 4, 5);
  const auto parts = parts_of(text);
  REQUIRE(parts.size() == 2);
  infty::BytePairLearner whole, in_parts;
  whole.add(text);
  std::string joined;
  for (const std::string& part : parts) {
    in_parts.add(part);
    joined += part;
  }
  REQUIRE(joined == text);
  const infty::BytePairs learned = whole.learn({.tokens = 270});
  REQUIRE(in_parts.learn({.tokens = 270}).tokens == learned.tokens);
  const infty::tests::TemporaryFolder folder;
  learned.save(folder.path());
  const auto encoding = infty::BytePairEncoding::from_folder(folder.path());
  infty::Index bytes = 0;
  REQUIRE(support::encode_parts(
              text, [&](std::string_view part) { return encoding.encode(part); },
              [&](infty::Index read) { bytes = read; }) == encoding.encode(text));
  REQUIRE(bytes == std::ssize(text));
  for (const auto unit :
       {infty::TextUnit::word, infty::TextUnit::character, infty::TextUnit::byte}) {
    std::vector<std::string> of_text, of_parts;
    infty::for_each_token(text, unit, [&](std::string_view token) { of_text.emplace_back(token); });
    for (const std::string& part : parts)
      infty::for_each_token(part, unit,
                            [&](std::string_view token) { of_parts.emplace_back(token); });
    REQUIRE(of_parts == of_text);
  }
}

TEST_CASE("text_parts: what has no place to be cut is one part") {
  REQUIRE(parts_of("").empty());
  const std::string line(std::size_t{3} << 20, 'a');
  REQUIRE(parts_of(line) == std::vector{line});
  REQUIRE(parts_of(line + '\n') == std::vector{line + '\n'});
  REQUIRE(parts_of(line + "\n\nb").size() == 1);
  REQUIRE(parts_of(line + "\nb").size() == 2);
}

}  // namespace text_parts_tests
