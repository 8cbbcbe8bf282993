// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include <infty/metrics/rouge.hpp>

#include "support/catch.hpp"

using infty::rouge_l;
using infty::rouge_n;
using infty::rouge_words;

TEST_CASE("ROUGE's words: a to z and digits, longer ones by their stems", "[metrics]") {
  CHECK(rouge_words("The runners' 3rd café, running!") ==
        std::vector<std::string>{"the", "runner", "3rd", "caf", "run"});
  CHECK(rouge_words("was running", {.stem = false}) == std::vector<std::string>{"was", "running"});
  CHECK(rouge_words("Ünß\xFF").size() == 1);  // n alone
  CHECK(rouge_words("").empty());
}

TEST_CASE("ROUGE-n: shared runs of words, each as often as in both", "[metrics]") {
  const auto one = rouge_n("the cat the cat", "the cat sat", 1);
  CHECK(one.precision == 2. / 4);
  CHECK(one.recall == 2. / 3);
  CHECK(one.f() == Catch::Approx(4. / 7));
  const auto two = rouge_n("the cat the cat", "the cat sat", 2);
  CHECK(two.precision == Catch::Approx(1. / 3));
  CHECK(two.recall == 1. / 2);
  CHECK(rouge_n("the cat", "the cat", 3).f() == 0);
  CHECK(rouge_n("", "", 1).f() == 0);
  CHECK_THROWS_WITH(rouge_n("a", "a", 0),
                    Catch::Matchers::Contains("rouge_n") && Catch::Matchers::Contains("n is 0"));
}

TEST_CASE("ROUGE-L: the longest words in common, with gaps", "[metrics]") {
  const auto all = rouge_l("a b c d e", "x a c y e d");  // a c e, or a c d
  CHECK(all.precision == Catch::Approx(3. / 5));
  CHECK(all.recall == Catch::Approx(3. / 6));
  CHECK(rouge_l("a b", "b a").recall == 1. / 2);
  CHECK(rouge_l("", "b a").recall == 0);
  CHECK(rouge_l("b a", "").f() == 0);
}
