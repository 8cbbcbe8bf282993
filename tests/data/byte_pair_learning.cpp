// SPDX-License-Identifier: MIT
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <infty/data/byte_pair_encoding.hpp>
#include <infty/data/byte_pair_learning.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::BytePairLearner;
using infty::BytePairs;
using infty::Index;
using infty::TokenId;
using Merges = std::vector<std::pair<std::string, std::string>>;

TEST_CASE("byte pairs: the commonest pair first, of equals that of smaller numbers", "[data]") {
  BytePairLearner learner;
  learner.add("low low low lower lower newest newest newest newest newest newest");
  learner.add("widest widest widest");
  // Behind the first two, n e w est stands 6 times: of its three pairs e w has the smaller numbers.
  const BytePairs made = learner.learn({.tokens = 262, .names = {}});
  CHECK(made.merges[0] == std::pair<std::string, std::string>{"e", "s"});   // 9
  CHECK(made.merges[1] == std::pair<std::string, std::string>{"es", "t"});  // 9
  CHECK(made.merges[2] == std::pair<std::string, std::string>{"e", "w"});
  CHECK(made.tokens.size() == 262);
  CHECK(made.tokens[256] == "es");
  CHECK(made.tokens[0] == "!");
  CHECK(made.tokens[188] == std::string(1, '\0'));
}

TEST_CASE("byte pairs: runs of one letter, and a pair that is too rare", "[data]") {
  BytePairLearner learner;
  learner.add("aaaaa");
  CHECK(learner.learn({.tokens = 300, .least = 1}).merges ==
        Merges{{"a", "a"}, {"aa", "a"}, {"aa", "aaa"}});
  CHECK(learner.learn({.tokens = 300}).merges == Merges{{"a", "a"}});
  CHECK(learner.learn({.tokens = 257}).merges.empty());
  CHECK(BytePairLearner().learn().tokens.size() == 256);
}

TEST_CASE("byte pairs: what is learned is read again, whatever the bytes", "[data]") {
  BytePairLearner learner;
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += static_cast<char>((i * i) % 256);
    text += i % 7 == 0 ? "the\n" : " \xC3\xA9t\xC3\xA9";
  }
  learner.add(text);
  Index last = 0;
  const BytePairs made = learner.learn({.tokens = 500, .names = {"<|endoftext|>", "<doc>"}},
                                       [&](Index tokens) { last = tokens; });
  CHECK(last == std::ssize(made.tokens));
  CHECK(made.tokens.size() + made.names.size() <= 500);
  const auto folder =
      std::filesystem::temp_directory_path() / ("infty_byte_pairs_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  made.save(folder);
  const infty::BytePairEncoding read(folder / "vocab.json", folder / "merges.txt");
  std::filesystem::remove_all(folder);
  CHECK(read.size() == std::ssize(made.tokens) + 2);
  for (std::size_t i = 0; i < made.tokens.size(); ++i)
    REQUIRE(read.token(static_cast<Index>(i)) == made.tokens[i]);
  CHECK(read.find("<doc>") == static_cast<TokenId>(made.tokens.size() + 1));
  const auto ids = read.encode(text);
  CHECK(read.decode(ids) == text);
  CHECK(ids.size() < text.size() / 3);
}

TEST_CASE("byte pairs: where one file cannot be written the other stays as it was", "[data]") {
  const infty::tests::TemporaryFolder folder;
  BytePairLearner one, other;
  one.add("aaa bbb aaa bbb");
  other.add("xyz xyz xyz");
  one.learn({.tokens = 260}).save(folder.path());
  const std::string before = infty::tests::read_text(folder / "vocab.json");
  // All names that the file could be written under are taken.
  for (int i = 0; i < 1000; ++i)
    infty::tests::write_text(
        folder / ("merges.txt.tmp" + std::to_string(::getpid()) + "-" + std::to_string(i)), "");
  CHECK_THROWS_AS(other.learn({.tokens = 262}).save(folder.path()), infty::IoError);
  CHECK(infty::tests::read_text(folder / "vocab.json") == before);
  const infty::BytePairEncoding read(folder / "vocab.json", folder / "merges.txt");
  CHECK(read.find("aa").has_value());
}

TEST_CASE("byte pairs: constants out of their range", "[data]") {
  const BytePairLearner learner;
  CHECK_THROWS_WITH(learner.learn({.tokens = 256}), Contains("tokens is 256"));
  CHECK_THROWS_WITH(learner.learn({.least = 0}), Contains("least is 0"));
  CHECK_THROWS_WITH(learner.learn({.names = {"<a>", "<a>"}}), Contains("names has <a> twice"));
  for (const char* name : {"a", "<|end of text|>", "\n"})
    CHECK_THROWS_WITH(learner.learn({.names = {name}}), Contains("cannot be written"));
  CHECK_THROWS_WITH(learner.learn({.names = {""}}), Contains("names has an empty one"));
  CHECK_THROWS_WITH(learner.learn({.names = {"\xFF"}}), Contains("is no UTF-8"));
  CHECK_THROWS_AS(infty::BytePairs{}.save("/nonexistent"), infty::IoError);
}

TEST_CASE("byte pairs: no merge makes what a name is written as", "[data]") {
  BytePairLearner learner;
  learner.add("the the the the then there");
  const BytePairs made = learner.learn({.tokens = 300, .names = {"the", "\xC4\xA0t"}});  // "Ġt"
  for (const std::string token : {"the", " t"})
    CHECK(std::find(made.tokens.begin(), made.tokens.end(), token) == made.tokens.end());
  CHECK(std::find(made.tokens.begin(), made.tokens.end(), "he") != made.tokens.end());
  const auto folder =
      std::filesystem::temp_directory_path() / ("infty_byte_names_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  made.save(folder);
  const infty::BytePairEncoding read(folder / "vocab.json", folder / "merges.txt");
  std::filesystem::remove_all(folder);
  CHECK(read.find("the") == static_cast<TokenId>(made.tokens.size()));
}
