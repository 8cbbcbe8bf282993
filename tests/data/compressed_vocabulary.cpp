// SPDX-License-Identifier: MIT
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <infty/data/compressed_vocabulary.hpp>
#include <infty/io/json.hpp>
#include <infty/io/safetensors_file.hpp>

#include "support/catch.hpp"

using infty::canonical_word;
using infty::Index;

TEST_CASE("canonical_word: what a reader takes for the same word") {
  for (const std::string_view apple : {"apple", " Apple", "APPLE ", "\t aPPle\r\n", "\u00c1pple",
                                       "\uff21pple", "A\u0301pple", "\u3000apple\u00a0"})
    CHECK(canonical_word(apple) == "apple");
  CHECK(canonical_word("\ufb01n") == "fin");
  CHECK(canonical_word("x\u00b2") == "x2");
  CHECK(canonical_word("\u00bd") == "1\u20442");
  CHECK(canonical_word("\u0130") == "i");
  CHECK(canonical_word("\u03a3\u03a3") == "\u03c3\u03c3");
  CHECK(canonical_word("\ud55c") == "\u1112\u1161\u11ab");
  CHECK(canonical_word("great   big\n\n tame") == "great big tame");
  CHECK(canonical_word(" ") == " ");
  CHECK(canonical_word("\n") == " ");
  CHECK(canonical_word("\t\t ") == " ");
  CHECK(canonical_word("\u2003").empty() == false);  // by NFKC a blank, which is alone
  CHECK(canonical_word("").empty());
  CHECK(canonical_word("\u0301").empty());
  CHECK(canonical_word("\u0915\u093e") == "\u0915");  // a vowel sign that takes room is a mark, too
  CHECK(canonical_word("\u0488").empty());            // and what stands around a letter
  CHECK(canonical_word("A\xFF\xC3") == "a\xFF\xC3");
}

TEST_CASE("canonical_word: every character as Python's Unicode database has it") {
  std::uint64_t hash = 14695981039346656037U;
  for (std::uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    infty::detail::append_folded(text, code);
    for (const char byte : text + '\n')
      hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  }
  CHECK(hash == 10030152802418227518U);  // what tests/data/make_word_table.py --hash prints
}

TEST_CASE("compressed_vocabulary: the program's lookup") {
  const std::string name = GENERATE("engram_single", "engram_branches");
  const infty::SafetensorsFile file(std::string(INFTY_TEST_DATA) + "/golden/" + name +
                                    ".safetensors");
  infty::detail::JsonReader words(file.metadata("vocabulary"), "vocabulary");
  std::vector<std::string> tokens;
  words.array([&] { tokens.push_back(words.string()); });
  CHECK(infty::compressed_vocabulary(tokens) == file.read<Index>("tokenizer.lookup"));
}

TEST_CASE("compressed_vocabulary: what is no text is what a byte-level encoding writes it as") {
  const std::vector<std::string> tokens{"a", "\xFF", "A", "\u0301", "\u0301", ""};
  CHECK(infty::compressed_vocabulary(tokens) == std::vector<Index>{0, 1, 0, 2, 2, 3});
  // As in the program, whose key of a token that has no text is its name: the byte F0 is called as
  // the letter is, E2 as one that loses its accent, and the last is two of these.
  const std::vector<std::string> bytes{"\xF0", " \u00d0", "\u00f0",
                                       "\xE2", "\u00e2",  "\xC3\xA9\xC2"};
  CHECK(infty::compressed_vocabulary(bytes) == std::vector<Index>{0, 0, 0, 1, 2, 3});
}

TEST_CASE("compressed_vocabulary: what decoding has replaced is a word of its own") {
  const std::vector<std::string> tokens{"\uFFFD", "\uFFFD", "x\uFFFD", "x\uFFFD"};
  CHECK(infty::compressed_vocabulary(tokens) == std::vector<Index>{0, 1, 2, 3});
}
