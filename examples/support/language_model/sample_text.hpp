// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include <infty/core/random.hpp>

namespace language_model {

/// Tales to try the program on, a million characters and the same ones always, a line break behind
/// each paragraph. A tale has people, places and things of its own, out of a few hundred names, so
/// that who remembers its beginning guesses its words better.
inline std::vector<std::string> sample_tales(infty::Index tales = 400) {
  using infty::Index;
  const auto pick = [](infty::Random& random, const auto& from) -> const std::string& {
    return from[static_cast<std::size_t>(random.below(std::ssize(from)))];
  };
  const std::vector<std::string> first{"Ba", "Ce", "Do", "Fa", "Gu", "Ha", "Ji", "Ka", "Lo", "Ma",
                                       "Ni", "Or", "Pe", "Ra", "Si", "Ta", "Ul", "Va", "Wi", "Zo"};
  const std::vector<std::string> middle{"la", "mi", "no", "ra", "si", "to", "ve", "da", "lo", "ri"};
  const std::vector<std::string> of_person{"n", "s", "k", "th"}, of_place{"mouth", "field", "ham"};
  const std::vector<std::string> things{"lantern", "sword", "letter", "ring",   "map",
                                        "violin",  "clock", "key",    "mirror", "coin",
                                        "book",    "bell",  "saddle", "crown",  "oar",
                                        "candle",  "chest", "cloak",  "flute",  "compass"};
  const std::vector<std::string> kinds{"old", "silver", "broken", "small", "heavy", "golden"};
  const std::vector<std::string> patterns{
      "A went to P with the O .",
      "In P , A met B , who had lost the O .",
      "A gave the O to B and left P in the morning .",
      "\" Where is the O ? \" asked A . \" It is in P , \" said B .",
      "B did not trust A , for A came from P .",
      "When A returned from P , the O was gone .",
      "A and B spoke of the O until night fell over P .",
      "Nobody in P had ever seen the O , but A knew it well .",
      "B sold the O in P and told A nothing of it .",
      "The road to P was long , and A carried the O ."};
  infty::Random random(20220522);
  std::vector<std::string> out;
  for (Index tale = 0; tale < tales; ++tale) {
    const auto named = [&](const std::vector<std::string>& endings) {
      return pick(random, first) + pick(random, middle) + pick(random, endings);
    };
    std::vector<std::string> people, places, objects;
    for (int i = 0; i < 4; ++i) people.push_back(named(of_person));
    for (int i = 0; i < 3; ++i) {
      places.push_back(named(of_place));
      objects.push_back(pick(random, kinds) + ' ' + pick(random, things));
    }
    std::string text = "= The tale of " + people.front() + " of " + places.front() + " =\n";
    for (Index paragraph = 0, count = 6 + random.below(9); paragraph < count; ++paragraph) {
      for (Index sentence = 0, most = 3 + random.below(4); sentence < most; ++sentence) {
        const Index a = random.below(4), b = (a + 1 + random.below(3)) % 4;
        if (sentence > 0) text += ' ';
        for (const char c : pick(random, patterns)) {
          if (c == 'A')
            text += people[static_cast<std::size_t>(a)];
          else if (c == 'B')
            text += people[static_cast<std::size_t>(b)];
          else if (c == 'P')
            text += pick(random, places);
          else if (c == 'O')
            text += pick(random, objects);
          else
            text += c;
        }
      }
      text += '\n';
    }
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace language_model
