// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <infty/metrics/meteor.hpp>

#include "support/catch.hpp"

using infty::meteor;
using infty::Meteor;

TEST_CASE("METEOR: the same text, another, and none", "[metrics]") {
  const Meteor same = meteor("It was a Film", "it was a film");
  CHECK(same.matches.size() == 4);
  CHECK(same.chunks == 1);
  CHECK(same.score == Catch::Approx(1 - .5 / 64));
  CHECK(meteor("x", "y").score == 0);
  CHECK(meteor("", "y").score == 0);
  CHECK(meteor("x", "").score == 0);
  CHECK(meteor("film.", "film").matches.empty());  // punctuation belongs to its word
}

TEST_CASE("METEOR: exact words first, then stems, from the last on", "[metrics]") {
  using Matches = std::vector<std::pair<std::size_t, std::size_t>>;
  const Meteor found = meteor("run runs a run", "runs running a run run");
  CHECK(found.matches == Matches{{0, 3}, {1, 0}, {2, 2}, {3, 4}});
  CHECK(found.chunks == 4);
  const double precision = 1, recall = 4. / 5;
  CHECK(found.score == Catch::Approx(precision * recall / (.9 * precision + .1 * recall) *
                                     (1 - .5 * std::pow(1., 3))));
  CHECK(meteor("runner", "running").matches.empty());
  CHECK(meteor("runs", "running").matches.size() == 1);
}

TEST_CASE("METEOR: constants out of their range", "[metrics]") {
  CHECK_THROWS_WITH(meteor("a", "a", {.alpha = 1.5}), Catch::Matchers::Contains("alpha is 1.5"));
  CHECK_THROWS_WITH(meteor("a", "a", {.beta = -1}), Catch::Matchers::Contains("beta is -1"));
  CHECK_THROWS_WITH(meteor("a", "a", {.gamma = std::nan("")}),
                    Catch::Matchers::Contains("gamma is"));
  CHECK(meteor("a b", "a b", {.gamma = 0}).score == 1);
}
