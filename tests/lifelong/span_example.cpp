// SPDX-License-Identifier: MIT
#include <string>
#include <string_view>
#include <vector>

#include <infty/lifelong/span_example.hpp>

#include "support/catch.hpp"

using infty::Index;

TEST_CASE("span_example: words of question and text, and the words that the answer is a part of") {
  const std::string context = "It was\nin Paris, in May (1891).";
  const auto made = [&](std::string_view answer, Index longest) {
    const std::size_t begin = context.find(answer);
    return infty::span_example(
        {0, "Where was it?", begin, begin + answer.size()}, context, 7,
        [](std::string_view word) { return std::ssize(word); }, longest);
  };
  const auto paris = made("Paris", 100);
  REQUIRE(paris);
  // front, three words, front, and seven words by their lengths.
  CHECK(paris->tokens == std::vector<Index>{7, 5, 3, 3, 7, 2, 3, 2, 6, 2, 3, 7});
  CHECK(paris->labels == std::vector<Index>{8, 8});
  CHECK(made("in Paris, in", 100)->labels == std::vector<Index>{7, 9});
  CHECK(made("891", 100)->labels == std::vector<Index>{11, 11});
  CHECK(made("was\nin", 100)->labels == std::vector<Index>{6, 7});
  CHECK_FALSE(made("\n", 100));  // no word
  const auto cut = made("Paris", 9);
  REQUIRE(cut);
  CHECK(cut->tokens == std::vector<Index>{7, 5, 3, 3, 7, 2, 3, 2, 6});
  CHECK_FALSE(made("Paris", 8));
  CHECK_FALSE(made("Paris, in", 9));
  CHECK_FALSE(made("Paris", 0));
  CHECK_FALSE(made("Paris", -1));
}
