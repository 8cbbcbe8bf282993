// SPDX-License-Identifier: MIT
#include <string>

#include <infty/metrics/porter.hpp>

#include "support/catch.hpp"

using infty::porter_stem;

TEST_CASE("Porter's stems: a word of every step", "[metrics]") {
  // From Porter's paper, and what nltk's PorterStemmer makes of its additions.
  const char* const words[][2] = {
      {"caresses", "caress"},
      {"ponies", "poni"},
      {"ties", "tie"},
      {"dies", "die"},
      {"cats", "cat"},
      {"feed", "feed"},
      {"agreed", "agre"},
      {"plastered", "plaster"},
      {"bled", "bled"},
      {"motoring", "motor"},
      {"sing", "sing"},
      {"conflated", "conflat"},
      {"hopping", "hop"},
      {"falling", "fall"},
      {"hissing", "hiss"},
      {"failing", "fail"},
      {"filing", "file"},
      {"tied", "tie"},
      {"spied", "spi"},
      {"happy", "happi"},
      {"sky", "sky"},
      {"enjoy", "enjoy"},
      {"by", "by"},
      {"relational", "relat"},
      {"conditional", "condit"},
      {"vietnamization", "vietnam"},
      {"formalism", "formal"},
      {"sensibiliti", "sensibl"},
      {"archaeology", "archaeolog"},
      {"fundamentally", "fundament"},
      {"triplicate", "triplic"},
      {"hopeful", "hope"},
      {"replacement", "replac"},
      {"adoption", "adopt"},
      {"bowdlerize", "bowdler"},
      {"probate", "probat"},
      {"rate", "rate"},
      {"cease", "ceas"},
      {"controll", "control"},
      {"roll", "roll"},
      {"innings", "inning"},
      {"Proceed", "proceed"},
  };
  for (const auto& [word, stem] : words) {
    INFO(word);
    CHECK(porter_stem(word) == stem);
  }
}

TEST_CASE("Porter's stems: other letters are consonants, and nothing is too long", "[metrics]") {
  CHECK(porter_stem("ÉTÉS") == "été");
  CHECK(porter_stem("") == "");
  CHECK(porter_stem("\xFF\xFEs") == "\xFF\xFE");
  CHECK(porter_stem(std::string(100000, 'y')).size() == 100000);
}
