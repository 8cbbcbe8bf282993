// SPDX-License-Identifier: MIT
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/data/text.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::count_characters;
using infty::for_each_token;
using infty::text_files;
using infty::TextUnit;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;

namespace {

using Tokens = std::vector<std::string>;

Tokens tokens_of(std::string_view text, TextUnit unit) {
  Tokens out;
  for_each_token(text, unit, [&](std::string_view token) { out.emplace_back(token); });
  return out;
}

}  // namespace

TEST_CASE("for_each_token: words and line ends as in WikiText") {
  CHECK(tokens_of(" \n = A b = \n \n", TextUnit::word) ==
        Tokens{"<eos>", "=", "A", "b", "=", "<eos>", "<eos>"});
  CHECK(tokens_of("a\tb\r\nc", TextUnit::word) == Tokens{"a", "b", "<eos>", "c", "<eos>"});
  CHECK(tokens_of("", TextUnit::word).empty());
  CHECK(tokens_of("\n", TextUnit::word) == Tokens{"<eos>"});
  CHECK(tokens_of("  ", TextUnit::word) == Tokens{"<eos>"});
  CHECK(tokens_of("a\xFF\xC3 b", TextUnit::word) == Tokens{"a\xFF\xC3", "b", "<eos>"});
}

TEST_CASE("for_each_token: characters are UTF-8 sequences, and bytes that belong to none") {
  CHECK(tokens_of("aé€😀\n", TextUnit::character) == Tokens{"a", "é", "€", "😀", "\n"});
  CHECK(tokens_of("\xFF\xC3(\xE2\x82", TextUnit::character) ==
        Tokens{"\xFF", "\xC3", "(", "\xE2", "\x82"});
  CHECK(tokens_of("é", TextUnit::byte) == Tokens{"\xC3", "\xA9"});
  CHECK(count_characters("aé€😀\n") == 5);
  CHECK(count_characters("") == 0);
}

TEST_CASE("for_each_token: characters and bytes are the text, whatever its bytes") {
  infty::Random random(infty::tests::seed);
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::string text(static_cast<std::size_t>(random.below(40)), ' ');
    for (char& c : text) c = static_cast<char>(random.below(256));
    for (const TextUnit unit : {TextUnit::character, TextUnit::byte}) {
      std::string joined;
      for (const std::string& token : tokens_of(text, unit)) joined += token;
      REQUIRE(joined == text);
    }
  }
}

TEST_CASE("text_files: a file, and a folder's files in order") {
  const TemporaryFolder folder;
  write_text(folder / "b.txt", "b");
  write_text(folder / "a.txt", "a");
  write_text(folder / ".hidden", "");
  std::filesystem::create_directory(folder / "inner");
  CHECK(text_files(folder / "b.txt") == std::vector{folder / "b.txt"});
  CHECK(text_files(folder.path()) == std::vector{folder / "a.txt", folder / "b.txt"});
  CHECK_THROWS_WITH(text_files(folder / "inner"), Contains("the folder has no file"));
  CHECK_THROWS_WITH(text_files(folder / "none"), Contains("none: no such file or folder"));
}
