// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>
#include <vector>

#include <infty/lifelong/masking.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::MaskedText;
using infty::MaskingConfig;
using infty::Random;

TEST_CASE(
    "mask_text: 15 % of the words are guessed, 80, 10 and 10 % of which become what BERT's do") {
  Random random(5);
  const Index first = 2, mask = 12;
  std::vector<Index> text{0};
  for (Index i = 0; i < 40; ++i) text.push_back(first + i % (mask - first));
  text.push_back(1);
  Index masked = 0, same = 0, other = 0;
  std::vector<Index> times(text.size(), 0);
  for (Index round = 0; round < 4000; ++round) {
    const MaskedText out = infty::mask_text(text, first, mask, {}, random);
    REQUIRE(out.tokens.size() == text.size());
    REQUIRE(out.places.size() == 6);  // ⌊.15 * 40 + ½⌋
    REQUIRE(std::set<Index>(out.places.begin(), out.places.end()).size() == 6);
    std::size_t next = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (next < 6 && out.places[next] == static_cast<Index>(i)) {
        REQUIRE(out.targets[next] == text[i]);
        REQUIRE((out.tokens[i] >= first && out.tokens[i] <= mask));
        masked += out.tokens[i] == mask ? 1 : 0;
        same += out.tokens[i] == text[i] ? 1 : 0;
        other += out.tokens[i] != mask && out.tokens[i] != text[i] ? 1 : 0;
        ++times[i];
        ++next;
      } else {
        REQUIRE(out.tokens[i] == text[i]);
      }
    }
    REQUIRE(next == 6);
  }
  // Of 24,000 words: .8; .1 and a tenth of .1 that is the same word by chance; nine tenths of .1.
  const auto near = [](Index count, double share) {
    return std::abs(static_cast<double>(count) - 24000 * share) <
           5 * std::sqrt(24000 * share * (1 - share));
  };
  CHECK(near(masked, .8));
  CHECK(near(same, .11));
  CHECK(near(other, .09));
  CHECK(times.front() == 0);
  CHECK(times.back() == 0);
  for (std::size_t i = 1; i <= 40; ++i)  // 600 each, evenly
    CHECK(std::abs(static_cast<double>(times[i]) - 600) < 5 * std::sqrt(600.));
}

TEST_CASE("mask_text: one word at least, none where there is none, the same by the same draws") {
  Random random(1), again(1);
  const std::vector<Index> one{0, 7}, none{0, 0};
  CHECK(infty::mask_text(one, 1, 9, {}, random).places == std::vector<Index>{1});
  CHECK(infty::mask_text(none, 1, 9, {}, random).places.empty());
  CHECK(infty::mask_text(none, 1, 9, {}, random).tokens == none);
  CHECK(infty::mask_text({}, 1, 9, {}, random).tokens.empty());
  const std::vector<Index> text{0, 1, 2, 3, 4, 5, 6, 7};
  const MaskingConfig all{.share = 1, .masked = 1, .random = 0};
  random.seek(0);
  const auto whole = infty::mask_text(text, 1, 9, all, random);
  CHECK(whole.tokens == std::vector<Index>{0, 9, 9, 9, 9, 9, 9, 9});
  CHECK(whole.targets == std::vector<Index>{1, 2, 3, 4, 5, 6, 7});
  const auto same = infty::mask_text(text, 1, 9, all, again);
  CHECK(same.tokens == whole.tokens);
  CHECK(same.places == whole.places);
  const auto kept = infty::mask_text(text, 1, 9, {.share = .5, .masked = 0, .random = 0}, random);
  CHECK(kept.tokens == text);
  CHECK(kept.places.size() == 4);
}

TEST_CASE("mask_text: what cannot be is refused") {
  Random random(1);
  const std::vector<Index> text{1, 2};
  CHECK_THROWS_WITH(infty::mask_text(text, 3, 3, {}, random), Catch::Contains("[3, 3)"));
  CHECK_THROWS_WITH(infty::mask_text(text, -1, 3, {}, random), Catch::Contains("[-1, 3)"));
  CHECK_THROWS_WITH(infty::mask_text(text, 0, 3, {.share = 0}, random),
                    Catch::Contains("share is 0"));
  CHECK_THROWS_WITH(infty::mask_text(text, 0, 3, {.share = std::nan("")}, random),
                    Catch::Contains("share is nan"));
  CHECK_THROWS_WITH(infty::mask_text(text, 0, 3, {.masked = -.5}, random),
                    Catch::Contains("masked is -0.5"));
  CHECK_THROWS_WITH(infty::mask_text(text, 0, 3, {.random = 2}, random),
                    Catch::Contains("random is 2"));
  CHECK_THROWS_WITH(infty::mask_text(text, 0, 3, {.masked = .8, .random = .3}, random),
                    Catch::Contains("masked and random are 0.8 and 0.3"));
  CHECK(random.counter() == 0);
}
