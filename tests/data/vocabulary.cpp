// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/data/vocabulary.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/real_data.hpp"

using Catch::Matchers::Contains;
using infty::Index;
using infty::MappedFile;
using infty::TextUnit;
using infty::TokenCounts;
using infty::TokenId;
using infty::Vocabulary;
using infty::VocabularyConfig;
using infty::tests::read_text;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;

namespace {

TokenCounts counts_of(std::string_view text, TextUnit unit = TextUnit::word) {
  TokenCounts counts;
  counts.add_text(text, unit);
  return counts;
}

std::vector<std::string> words_of(const Vocabulary& vocabulary) {
  std::vector<std::string> out;
  for (Index i = 0; i < vocabulary.size(); ++i)
    out.push_back(vocabulary.token(i) + ' ' + std::to_string(vocabulary.count(i)));
  return out;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("Vocabulary: by falling count, then by bytes") {
  const Vocabulary all(counts_of("b c a c\nb c d"), {.unknown = false});
  CHECK(words_of(all) == Words{"c 3", "<eos> 2", "b 2", "a 1", "d 1"});
  CHECK(all.find("b") == 2);
  CHECK(!all.find("<unk>"));
  CHECK(words_of(Vocabulary(counts_of("b c a c\nb c d"))) ==
        Words{"c 3", "<eos> 2", "b 2", "a 1", "d 1", "<unk> 0"});
}

TEST_CASE("TokenCounts: characters and bytes, each as often as it stands there") {
  CHECK(words_of(Vocabulary(counts_of("aé日aé\xFF a", TextUnit::character), {.unknown = false})) ==
        Words{"a 3", "é 2", "  1", "日 1", "\xFF 1"});
  CHECK(words_of(Vocabulary(counts_of("aéaé", TextUnit::byte), {.unknown = false})) ==
        Words{"a 2", "\xA9 2", "\xC3 2"});
}

TEST_CASE("TokenCounts: more than an Index counts are refused, and change nothing") {
  constexpr auto most = std::numeric_limits<infty::Index>::max();
  infty::TokenCounts counts;
  counts.add("a", most - 1);
  CHECK_THROWS_WITH(counts.add("a", most), Contains("[TokenCounts::add] times is "));
  CHECK_THROWS_WITH(counts.add(""), "[TokenCounts::add] the token is empty");  // no file holds it
  CHECK_THROWS_AS(counts.add("b", 2), infty::ValueError);
  counts.add("a", 1);
  CHECK(counts.total() == most);
  CHECK(counts.map().size() == 1);
}

TEST_CASE("Vocabulary: what is left out is counted as unknown") {
  const auto counts = counts_of("b c a c\nb c d <unk>");
  CHECK(words_of(Vocabulary(counts, {.min_count = 2})) ==
        Words{"<unk> 3", "c 3", "<eos> 2", "b 2"});
  CHECK(words_of(Vocabulary(counts, {.max_size = 3})) == Words{"<unk> 5", "c 3", "<eos> 2"});
  CHECK(words_of(Vocabulary(counts, {.max_size = 1})) == Words{"<unk> 10"});
  CHECK(words_of(Vocabulary(counts, {.max_size = 2, .unknown = false})) == Words{"c 3", "<eos> 2"});
  CHECK_THROWS_WITH(Vocabulary(counts, {.min_count = 0}), Contains("min_count is 0"));
  CHECK_THROWS_WITH(Vocabulary(counts, {.max_size = -1}), Contains("max_size is -1"));
}

TEST_CASE("Vocabulary: numbers of tokens, and unknown ones") {
  const Vocabulary known(counts_of("b c c\n"));
  CHECK(known.encode("c d b", TextUnit::word) == std::vector<TokenId>{0, 3, 2, 1});
  CHECK(known.token(3) == "<unk>");
  const Vocabulary closed(counts_of("b c c\n"), {.unknown = false});
  CHECK_THROWS_WITH(closed.encode("c d b", TextUnit::word),
                    Contains("'d' is none of the 3 tokens, and neither is <unk>"));
  // The end of a line is no part of the text.
  infty::TokenCounts words;
  words.add("b");
  words.add("c");
  CHECK_THROWS_WITH(Vocabulary(words, {.unknown = false}).encode("c\nb", TextUnit::word),
                    Contains("'<eos>' is none of the 2 tokens"));
  // A character that is not known is named, at the level of bytes, too, which show nothing alone.
  infty::TokenCounts bytes;
  bytes.add_text("abc 日", TextUnit::byte);
  const Vocabulary of_bytes(bytes, {.unknown = false});
  CHECK_THROWS_WITH(of_bytes.encode("ab 語", TextUnit::byte),
                    Contains("byte \\xe8 of '語' is none of the 7 tokens"));
  CHECK_THROWS_WITH(of_bytes.encode("日x", TextUnit::byte), Contains("] 'x' is none of the 7"));
  infty::TokenCounts characters;
  characters.add_text("日本", TextUnit::character);
  CHECK_THROWS_WITH(
      Vocabulary(characters, {.unknown = false}).encode("日本語", TextUnit::character),
      Contains("] '語' is none of the 2 tokens"));
  CHECK_THROWS_WITH(known.token(4), Contains("4 does not lie in [0, 4)"));
  CHECK_THROWS_AS(known.count(-1), infty::ValueError);
  CHECK_THROWS_AS(known.decode(std::vector<TokenId>{9}, TextUnit::word), infty::ValueError);
}

TEST_CASE("Vocabulary: texts come back") {
  const std::string wiki = " \n = A b = \n \n c <unk> A \n";
  const Vocabulary words(counts_of(wiki));
  CHECK(words.decode(words.encode(wiki, TextUnit::word), TextUnit::word) == wiki);
  infty::Random random(infty::tests::seed);
  for (int repeat = 0; repeat < 100; ++repeat) {
    std::string text(static_cast<std::size_t>(random.below(60)), ' ');
    for (char& c : text) c = static_cast<char>(random.below(repeat % 2 ? 256 : 128));
    for (const TextUnit unit : {TextUnit::character, TextUnit::byte}) {
      const auto counts = counts_of(text, unit);
      const Vocabulary vocabulary(counts, {.unknown = false});
      const auto ids = vocabulary.encode(text, unit);
      REQUIRE(static_cast<Index>(ids.size()) == counts.total());
      REQUIRE(static_cast<Index>(std::set(ids.begin(), ids.end()).size()) == vocabulary.size());
      REQUIRE(vocabulary.decode(ids, unit) == text);
    }
  }
}

TEST_CASE("Vocabulary: is saved as text and loaded") {
  const TemporaryFolder folder;
  std::string bytes = "é\\ \n";
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (const TextUnit unit : {TextUnit::word, TextUnit::character, TextUnit::byte}) {
    const Vocabulary saved(counts_of(bytes, unit));
    saved.save(folder / "v");
    const Vocabulary loaded = Vocabulary::load(folder / "v");
    CHECK(words_of(loaded) == words_of(saved));
    CHECK(loaded.encode(bytes, unit) == saved.encode(bytes, unit));
  }
  Vocabulary(counts_of("é b\\c\n")).save(folder / "v");
  CHECK(read_text(folder / "v") == "1\t<eos>\n1\tb\\x5cc\n1\té\n0\t<unk>\n");
  Vocabulary().save(folder / "v");
  CHECK(Vocabulary::load(folder / "v").size() == 0);
  CHECK_THROWS_AS(Vocabulary().save(folder / "none" / "v"), infty::IoError);
}

TEST_CASE("Vocabulary: files that are none are refused in words") {
  const TemporaryFolder folder;
  const auto refused = [&](std::string_view text, const std::string& why) {
    write_text(folder / "v", text);
    CHECK_THROWS_WITH(Vocabulary::load(folder / "v"), Contains("v: line " + why));
  };
  refused("1\ta\n2\tb", "2: it does not end");
  refused("1 a\n", "1: there is no tab");
  refused("x\ta\n", "1: that is no count");
  refused("\ta\n", "1: that is no count");
  refused("-1\ta\n", "1: that is no count");
  refused("99999999999999999999\ta\n", "1: that is no count");
  refused("1\ta\\x4\n", "1: a backslash");
  refused("1\ta\\xzz\n", "1: a backslash");
  refused("1\ta\\\n", "1: a backslash");
  refused("1\t\n", "1: the token is empty");
  refused("2\ta\n1\ta\n", "2: the token has come before");
  for (const std::string_view raw : {"1\tthe\r\n", "1\ta b\n", "1\ta\t\n", "1\t\x7F\n"})
    refused(raw, "1: a space or a control character");
  CHECK_THROWS_WITH(Vocabulary::load(folder / "none"), Contains("No such file"));
}

TEST_CASE("Vocabulary: an empty text has no tokens") {
  const Vocabulary nothing(counts_of(""), {.unknown = false});
  CHECK(nothing.size() == 0);
  CHECK(nothing.encode("", TextUnit::word).empty());
  CHECK_THROWS_AS(nothing.encode("a", TextUnit::byte), infty::ValueError);
}

TEST_CASE("Vocabulary: the counts of WikiText-2") {
  const auto compressed = infty::tests::real_data("wikitext-2/train.txt.xz");
  if (!compressed) return;
  const TemporaryFolder folder;
  const auto text = folder / "train.txt";
  const std::string command = "xz -dc '" + compressed->string() + "' > '" + text.string() + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  const MappedFile train(text);
  const auto counts = counts_of(train.text());
  CHECK(counts.total() == 2'088'628);
  const Vocabulary vocabulary(counts);
  CHECK(vocabulary.size() == 33'278);
  CHECK(vocabulary.decode(vocabulary.encode(train.text(), TextUnit::word), TextUnit::word) ==
        train.text());
  for (const auto& [name, tokens] : {std::pair("valid", 217'646), std::pair("test", 245'569)}) {
    const MappedFile split(*infty::tests::real_data("wikitext-2/" + std::string(name) + ".txt"));
    const auto ids = vocabulary.encode(split.text(), TextUnit::word);
    CHECK(static_cast<int>(ids.size()) == tokens);
    CHECK(vocabulary.decode(ids, TextUnit::word) == split.text());
  }
}
