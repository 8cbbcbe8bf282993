// SPDX-License-Identifier: MIT
#include <cmath>

#include <infty/metrics/dialogue_score.hpp>

#include "support/catch.hpp"

TEST_CASE("dialogue score: by token, and by position", "[metrics]") {
  infty::DialogueScore score;
  CHECK(std::isnan(score.perplexity()));
  score.add(4, 2, 10);
  score.add(3, 3, 3);
  score.add(0, 0, 50);  // nothing was predicted
  CHECK(score.perplexity() == Catch::Approx(std::exp(7. / 5)));
  CHECK(score.weighed_perplexity() == Catch::Approx(std::exp((2. * 10 + 1. * 3) / 13)));
  CHECK_THROWS_WITH(score.add(std::nan(""), 1, 1), Catch::Matchers::Contains("nats is"));
  CHECK_THROWS_WITH(score.add(1, 2, 1), Catch::Matchers::Contains("positions is 1"));
  CHECK_THROWS_WITH(score.add(1, -1, 1), Catch::Matchers::Contains("predicted is -1"));
  CHECK(score.perplexity() == Catch::Approx(std::exp(7. / 5)));
}
