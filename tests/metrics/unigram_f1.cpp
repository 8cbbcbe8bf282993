// SPDX-License-Identifier: MIT
#include <string>

#include <infty/metrics/unigram_f1.hpp>

#include "support/catch.hpp"

using infty::unigram_f1;

TEST_CASE("unigram F1: words of both, however they are written", "[metrics]") {
  CHECK(unigram_f1("I like it.", "i LIKE it") == 1);
  CHECK(unigram_f1("the cat", "a cat!") == 1);
  CHECK(unigram_f1("a b c", "c d") ==
        Catch::Approx(2. / 4));  // `a` is an article: {b, c} and {c, d}
  CHECK(unigram_f1("x x x", "x y") == Catch::Approx(2. / 5));  // P 1/3, R 1/2
  CHECK(unigram_f1("don't", "dont") == 1);
  CHECK(unigram_f1("the-cat", "thecat") == 1);  // punctuation is deleted before articles
  CHECK(unigram_f1("É\u00A0Я", "é я") == 1);    // a no-break space parts words
  CHECK(unigram_f1("a\u2014b", "\u2014b") ==
        1);  // a long dash is none of ASCII's: `a` stands alone
}

TEST_CASE("unigram F1: nothing shared, nothing there", "[metrics]") {
  CHECK(unigram_f1("x", "y") == 0);
  CHECK(unigram_f1("", "") == 0);
  CHECK(unigram_f1("the", "an") == 0);
  CHECK(unigram_f1(std::string("\xFF\x00x", 3), std::string("\xFF\x00x", 3)) == 1);
}
