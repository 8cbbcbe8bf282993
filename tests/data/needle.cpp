// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include <infty/data/needle.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::NeedleTask;
using infty::Random;

TEST_CASE("NeedleTask: facts of different keys, and the value of one of them") {
  const NeedleTask task({.keys = 5, .values = 3, .fillers = 4, .decoys = 2});
  CHECK(task.length() == 6);
  CHECK(task.first_key() == 3);
  CHECK(task.first_filler() == 8);
  CHECK(task.vocabulary() == 12);
  Random random(infty::tests::seed);
  constexpr Index count = 900;
  const auto batch = task.sample(count, random);
  REQUIRE(batch.batch() == count);
  REQUIRE(batch.facts.size() == 6 * count);
  REQUIRE(batch.answers.size() == count);
  std::map<std::int64_t, double> keys, values, places;
  for (std::size_t row = 0; row < count; ++row) {
    const auto facts = std::span(batch.facts).subspan(6 * row, 6);
    std::map<std::int64_t, std::int64_t> known;
    for (std::size_t i = 0; i < 6; i += 2) {
      REQUIRE((facts[i] >= 3 && facts[i] < 8));
      REQUIRE((facts[i + 1] >= 0 && facts[i + 1] < 3));
      known[facts[i]] = facts[i + 1];
      ++values[facts[i + 1]];
      if (facts[i] == batch.questions[row]) ++places[static_cast<std::int64_t>(i)];
    }
    CHECK(known.size() == 3);
    REQUIRE(known.count(batch.questions[row]) == 1);
    CHECK(known[batch.questions[row]] == batch.answers[row]);
    ++keys[batch.questions[row]];
  }
  // Five standard deviations: 180 of 900 a key, 900 of 2700 a value, 300 of 900 a place.
  for (const auto& [key, n] : keys) CHECK(std::abs(n - 180) < 60);
  for (const auto& [value, n] : values) CHECK(std::abs(n - 900) < 123);
  for (const auto& [place, n] : places) CHECK(std::abs(n - 300) < 71);
  CHECK(places.size() == 3);
}

TEST_CASE("NeedleTask: the filler is the same whatever the pieces, and even") {
  const NeedleTask task({.keys = 2, .values = 2, .fillers = 4, .decoys = 0});
  Random random(infty::tests::seed);
  const auto batch = task.sample(3, random);
  constexpr Index length = 4000;
  const auto whole = task.filler(batch, 0, length);
  REQUIRE(whole.size() == 3 * length);
  for (const Index step : {1, 7, 1000}) {
    for (Index from = 0; from < length; from += step * 13) {
      const Index to = std::min(length, from + step);
      const auto piece = task.filler(batch, from, to);
      for (Index row = 0; row < 3; ++row)
        for (Index p = from; p < to; ++p)
          REQUIRE(piece[static_cast<std::size_t>(row * (to - from) + p - from)] ==
                  whole[static_cast<std::size_t>(row * length + p)]);
    }
  }
  const auto far = task.filler(batch, 10'000'000, 10'000'002);
  CHECK(far.size() == 6);
  CHECK(task.filler(batch, 5, 5).empty());
  std::map<std::int64_t, double> tokens;
  Index equal = 0;
  for (std::size_t p = 0; p < length; ++p) {
    ++tokens[whole[p]];
    equal += whole[p] == whole[p + length] ? 1 : 0;
  }
  CHECK(tokens.size() == 4);
  // 1000 of 4000, 27.4 the standard deviation; two rows agree by chance as often.
  for (const auto& [token, n] : tokens) {
    CHECK((token >= task.first_filler() && token < task.vocabulary()));
    CHECK(std::abs(n - 1000) < 137);
  }
  CHECK(std::abs(static_cast<double>(equal) - 1000) < 137);
}

TEST_CASE("NeedleTask: the same draws whatever the size of the batch") {
  const NeedleTask task({});
  Random whole_random(3), parts_random(3);
  const auto whole = task.sample(5, whole_random);
  task.sample(2, parts_random);
  const auto tail = task.sample(3, parts_random);
  CHECK(parts_random == whole_random);
  CHECK(std::vector(whole.questions.begin() + 2, whole.questions.end()) == tail.questions);
  CHECK(std::vector(whole.answers.begin() + 2, whole.answers.end()) == tail.answers);
  CHECK(std::vector(whole.facts.begin() + 2 * task.length(), whole.facts.end()) == tail.facts);
  const auto all = task.filler(whole, 0, 9), some = task.filler(tail, 0, 9);
  CHECK(std::vector(all.begin() + 2 * 9, all.end()) == some);
}

TEST_CASE("NeedleTask: refuses impossible sizes") {
  CHECK_THROWS_WITH(NeedleTask({.keys = 3, .decoys = 3}),
                    "[NeedleConfig] keys is 3: it must be more than decoys = 3");
  CHECK_THROWS_AS(NeedleTask({.values = 0}), infty::ValueError);
  CHECK_THROWS_AS(NeedleTask({.fillers = 0}), infty::ValueError);
  CHECK_THROWS_AS(NeedleTask({.decoys = -1}), infty::ValueError);
  constexpr Index huge = std::numeric_limits<Index>::max();
  CHECK_THROWS_WITH(NeedleTask({.keys = huge}), Catch::Contains("] keys is "));
  CHECK_THROWS_WITH(NeedleTask({.values = huge}), Catch::Contains("] values is "));
  CHECK_THROWS_WITH(NeedleTask({.fillers = huge}), Catch::Contains("] fillers is "));
  const NeedleTask task({});
  Random random(1);
  CHECK(task.sample(0, random).batch() == 0);
  CHECK(NeedleTask({.keys = infty::largest_size}).sample(1, random).batch() == 1);
  CHECK_THROWS_AS(task.sample(-1, random), infty::ValueError);
  const auto batch = task.sample(2, random);
  CHECK_THROWS_AS(task.filler(batch, -1, 4), infty::ValueError);
  CHECK_THROWS_AS(task.filler(batch, 5, 4), infty::ValueError);
  CHECK_THROWS_AS(task.filler(batch, 0, huge), infty::ValueError);
}
