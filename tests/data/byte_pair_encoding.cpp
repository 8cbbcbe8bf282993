// SPDX-License-Identifier: MIT
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/data/byte_pair_encoding.hpp>
#include <infty/io/mapped_file.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/real_data.hpp"

using Catch::Matchers::Contains;
using infty::BytePairEncoding;
using infty::IoError;
using infty::MappedFile;
using infty::TokenId;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;

namespace {

using Ids = std::vector<TokenId>;

// Of GPT-2's files, the tokens and merges that its encoding of the texts in encodings.json needs,
// in its order and with its numbers. The encodings were made from the whole files by a program in
// Python, with the `regex` module for the pattern and merging as the authors' program does.
const std::string golden = INFTY_TEST_DATA "/golden/gpt2/";

BytePairEncoding golden_encoding() {
  return BytePairEncoding(golden + "encoder.json", golden + "vocab.bpe");
}

std::map<std::string, Ids> golden_cases() {
  std::map<std::string, Ids> cases;
  const MappedFile file(golden + "encodings.json");
  infty::detail::JsonReader json(file.text(), "encodings.json");
  json.object([&](const std::string& text) {
    Ids& ids = cases[text];
    json.array([&] { ids.push_back(static_cast<TokenId>(json.integer())); });
  });
  json.finish();
  return cases;
}

std::string random_text(infty::Random& random, infty::Index length, const std::string& from = {}) {
  std::string text;
  for (infty::Index i = 0; i < length; ++i)
    text += from.empty() ? static_cast<char>(random.below(256))
                         : from[static_cast<std::size_t>(random.below(std::ssize(from)))];
  return text;
}

void check_round_trip(const BytePairEncoding& encoding) {
  infty::Random random(infty::tests::seed);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const auto length = random.below(80);
    const std::string any = random_text(random, length);
    REQUIRE(encoding.decode(encoding.encode(any)) == any);
    const std::string spaced = random_text(random, length, " \n\t'stvae 09!\xC3\xA9\xE2\x80\x83");
    REQUIRE(encoding.decode(encoding.encode(spaced)) == spaced);
  }
}

}  // namespace

TEST_CASE("BytePairEncoding: encodings of GPT-2 that everyone knows") {
  const auto encoding = golden_encoding();
  CHECK(encoding.encode("Hello world") == Ids{15496, 995});
  CHECK(encoding.encode("hello world") == Ids{31373, 995});
  CHECK(encoding.encode("Hello, world!") == Ids{15496, 11, 995, 0});
  CHECK(encoding.encode(" the") == Ids{262});
  CHECK(encoding.encode("\n\n") == Ids{628});
  CHECK(encoding.encode("The quick brown fox jumps over the lazy dog") ==
        Ids{464, 2068, 7586, 21831, 18045, 625, 262, 16931, 3290});
  CHECK(encoding.encode(" SolidGoldMagikarp") == Ids{43453});
  CHECK(encoding.encode("").empty());
  CHECK(encoding.find("<|endoftext|>") == 50256);
  CHECK(encoding.token(50256) == "<|endoftext|>");
  CHECK(encoding.size() == 50257);
}

TEST_CASE("BytePairEncoding: agrees with GPT-2 on letters, numbers, spaces of all kinds") {
  const auto encoding = golden_encoding();
  const auto cases = golden_cases();
  REQUIRE(cases.size() == 29);
  for (const auto& [text, ids] : cases) {
    CAPTURE(text);
    CHECK(encoding.encode(text) == ids);
    CHECK(encoding.decode(ids) == text);
  }
}

TEST_CASE("BytePairEncoding: any bytes come back") { check_round_trip(golden_encoding()); }

TEST_CASE("BytePairEncoding: the lowest merge goes first, everywhere from left to right") {
  const TemporaryFolder folder;
  // Merge 2 takes what merge 4 makes: it must wait until merge 4 has been everywhere.
  write_text(folder / "e", R"({"a":0,"b":1,"c":2,"bc":3,"abc":4,"abcabc":5,"ab":6,"aa":7})");
  write_text(folder / "v", "#version: 0.2\nb c\nabc abc\na b\nab c\na a\n");
  const BytePairEncoding encoding(folder / "e", folder / "v");
  CHECK(encoding.encode("abc") == Ids{0, 3});
  CHECK(encoding.encode("aaaaa") == Ids{7, 7, 0});
  CHECK(encoding.encode("abab") == Ids{6, 6});
  CHECK_THROWS_WITH(encoding.encode("abd"), Contains("the byte 100 is no token"));
  CHECK_THROWS_WITH(encoding.encode("ab本"),
                    Contains("the byte 230 is no token of this vocabulary: "
                             "it is of '本'"));
  write_text(folder / "v", "abc abc\na b\nab c\na a\n");
  CHECK(BytePairEncoding(folder / "e", folder / "v").encode("abcabcabc") == Ids{5, 4});
}

TEST_CASE("BytePairEncoding: files that are none are refused in words") {
  const TemporaryFolder folder;
  const auto refused = [&](std::string_view tokens, std::string_view merges, const char* why) {
    write_text(folder / "e", tokens);
    write_text(folder / "v", merges);
    CHECK_THROWS_AS(BytePairEncoding(folder / "e", folder / "v"), IoError);
    CHECK_THROWS_WITH(BytePairEncoding(folder / "e", folder / "v"), Contains(why));
  };
  const std::string_view tokens = R"({"a": 0, "b": 1, "ab": 2})";
  refused("", "", "expected an object");
  refused("{}", "", "there is no token");
  refused(R"({"a": 0, "b)", "", "a string that does not end");
  refused(R"({"a": 0} x)", "", "something follows");
  refused(R"({"a": 0, "b": 0})", "", "two tokens have the number 0");
  refused(R"({"a": 0, "a": 1})", "", "is repeated");
  refused(R"({"": 0})", "", "is not written in symbols");
  refused(R"({"a b": 0})", "", "is not written in symbols");
  refused(R"({"一": 0})", "", "is not written in symbols");
  refused(R"({"a": -1})", "", "unsigned integer");
  refused(R"({"a": 4000000000})", "", "with 1 tokens it must be below 64");
  refused(R"({"a": 0, "b": 16777215, "c": 1, "ab": 2})", "",
          "a token has the number 16777215: with 4 tokens it must be below 256");
  refused(R"({"a": 18446744073709551615})", "", "must be below 64");
  refused("{\"\xFF\": 0}", "", "invalid UTF-8");
  refused(tokens, "a b\nab c\n", "v: line 2: 'c' is no token");
  refused(tokens, "b a\n", "line 1: 'b a' makes what is no token");
  refused(tokens, "a b\na b\n", "line 2: 'a b' has come before");
  refused(tokens, "a b c\n", "is not two symbols");
  refused(tokens, "ab\n", "is not two symbols");
  refused(tokens, "a \xFF\n", "is no token");
  write_text(folder / "e", tokens);
  CHECK_THROWS_WITH(BytePairEncoding(folder / "none", folder / "v"), Contains("No such file"));
  CHECK_THROWS_WITH(BytePairEncoding(folder / "e", folder / "none"), Contains("No such file"));
  CHECK_THROWS_WITH(BytePairEncoding(folder / "e", folder.path()), Contains("not a regular file"));
}

TEST_CASE("BytePairEncoding: numbers may have holes, up to 64 times the number of tokens") {
  const TemporaryFolder folder;
  write_text(folder / "e", R"({"a": 0, "b": 255, "c": 1, "ab": 2})");
  write_text(folder / "v", "a b\n");
  const BytePairEncoding encoding(folder / "e", folder / "v");
  CHECK(encoding.size() == 256);
  CHECK(encoding.encode("abcb") == Ids{2, 1, 255});
  for (const TokenId id : {-1, 3, 254, 256}) CHECK_FALSE(encoding.has(id));
  for (const TokenId id : {0, 2, 255}) CHECK(encoding.has(id));
}

TEST_CASE("BytePairEncoding: numbers of no token are refused") {
  const auto encoding = golden_encoding();  // in whose numbers there are holes
  for (const TokenId id : {-1, 50257, 50000, 1 << 30})
    CHECK_THROWS_AS(encoding.decode(Ids{0, id}), infty::ValueError);
}

TEST_CASE("BytePairEncoding: the whole of GPT-2") {
  const auto folder = infty::tests::real_data("gpt2-bpe");
  if (!folder) return;
  const BytePairEncoding encoding(*folder / "encoder.json", *folder / "vocab.bpe");
  CHECK(encoding.size() == 50257);
  for (const auto& [text, ids] : golden_cases()) CHECK(encoding.encode(text) == ids);
  check_round_trip(encoding);
  // Number of tokens and a sum over them, by the same program in Python.
  const MappedFile wiki(*infty::tests::real_data("wikitext-2/test.txt"));
  const auto ids = encoding.encode(wiki.text());
  std::uint32_t sum = 0;
  for (const TokenId id : ids) sum = sum * 31 + static_cast<std::uint32_t>(id);
  CHECK(ids.size() == 295'877);
  CHECK(sum == 3'206'168'821U);
  CHECK(encoding.decode(ids) == wiki.text());
}
