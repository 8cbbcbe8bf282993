// SPDX-License-Identifier: MIT
#include <string>
#include <string_view>

#include <infty/data/byte_pair_encoding.hpp>
#include <infty/data/text.hpp>
#include <infty/data/vocabulary.hpp>
#include <infty/io/mapped_file.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using infty::Index;
using infty::MappedFile;
using infty::TextUnit;
using infty::TokenCounts;
using infty::Vocabulary;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr Index long_text = 5'000'000;  // sanitised code takes ten times as long
#else
constexpr Index long_text = 50'000'000;
#endif

const std::string phrase = "word\xFF and\xC3\xA9 other ";  // 18 bytes, 17 characters, 3 words

}  // namespace

TEST_CASE("Vocabulary: a line of 50 MB without an end, not all of it UTF-8") {
  const TemporaryFolder folder;
  std::string line;
  constexpr Index times = long_text / 18, long_word = 1'000'000;
  for (Index i = 0; i < times; ++i) line += phrase;
  line += std::string(long_word, 'x');
  write_text(folder / "line", line);
  const MappedFile file(folder / "line");

  TokenCounts words, characters, bytes;
  words.add_text(file.text(), TextUnit::word);
  CHECK(words.total() == 3 * times + 2);
  const Vocabulary vocabulary(words);
  CHECK(vocabulary.size() == 6);
  CHECK(static_cast<Index>(vocabulary.encode(file.text(), TextUnit::word).size()) == words.total());

  characters.add_text(file.text(), TextUnit::character);
  CHECK(characters.total() == 17 * times + long_word);
  bytes.add_text(file.text(), TextUnit::byte);
  CHECK(bytes.total() == 18 * times + long_word);
  CHECK(Vocabulary(bytes, {.unknown = false}).size() == 14);
}

TEST_CASE("BytePairEncoding: a line of 50 MB, and a word of a megabyte, take no quadratic time") {
  const std::string folder = INFTY_TEST_DATA "/golden/gpt2/";
  const infty::BytePairEncoding encoding(folder + "encoder.json", folder + "vocab.bpe");
  std::string line;
  for (Index i = 0; i < long_text / 18; ++i) line += phrase;
  const auto once = encoding.encode(phrase);
  const auto ids = encoding.encode(line);
  // Only the first word has no space in front of it, and only the last space no word behind it.
  const auto twice = encoding.encode(phrase + phrase);
  CHECK(ids.size() ==
        twice.size() + static_cast<std::size_t>(long_text / 18 - 2) * (twice.size() - once.size()));
  CHECK(encoding.decode(ids) == line);
  for (const std::string_view part : {"a", "ab", "the", " ", "!", "\xFF", "\n \t"}) {
    std::string word;
    while (word.size() < long_text / 50) word += part;
    const auto pieces = encoding.encode(word);
    REQUIRE(encoding.decode(pieces) == word);
  }
}
