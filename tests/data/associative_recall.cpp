// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <infty/data/associative_recall.hpp>

#include "support/catch.hpp"

using infty::AssociativeRecallTask;
using infty::Index;
using infty::Random;

TEST_CASE("AssociativeRecallTask: pairs, blanks, and every key once more") {
  const AssociativeRecallTask task({.keys = 6, .values = 3, .pairs = 4, .gap = 5});
  CHECK(task.length() == 13);
  CHECK(task.first_key() == 3);
  CHECK(task.blank() == 9);
  CHECK(task.vocabulary() == 10);
  Random random(infty::tests::seed);
  const auto batch = task.sample(300, random);
  REQUIRE(batch.tokens.size() == 300 * 13);
  REQUIRE(batch.questions.size() == 300 * 4);
  REQUIRE(batch.answer.size() == 300 * 4);
  std::map<std::int64_t, double> keys, values;
  Index same_order = 0;
  for (std::size_t row = 0; row < 300; ++row) {
    const auto tokens = std::span(batch.tokens).subspan(13 * row, 13);
    std::map<std::int64_t, std::int64_t> pairs;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::int64_t key = tokens[2 * i], value = tokens[2 * i + 1];
      REQUIRE((key >= 3 && key < 9));
      REQUIRE((value >= 0 && value < 3));
      pairs[key] = value;
      ++keys[key];
      ++values[value];
    }
    CHECK(pairs.size() == 4);  // keys differ
    for (const std::int64_t token : tokens.last(5)) CHECK(token == 9);
    std::set<std::int64_t> asked;
    bool same = true;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::int64_t key = batch.questions[4 * row + i];
      asked.insert(key);
      same = same && key == tokens[2 * i];
      REQUIRE(pairs.count(key) == 1);
      CHECK(batch.answer[4 * row + i] == pairs[key]);
    }
    CHECK(asked.size() == 4);
    same_order += same ? 1 : 0;
  }
  // 1,200 draws: keys 200 each, values 400 each; five standard deviations and more.
  for (const auto& [key, count] : keys) CHECK(std::abs(count - 200) < 65);
  for (const auto& [value, count] : values) CHECK(std::abs(count - 400) < 82);
  CHECK(same_order < 35);  // 12.5 of 300 by chance
}

TEST_CASE("AssociativeRecallTask: the same draws whatever the size of the batch") {
  const AssociativeRecallTask task({.keys = 5, .values = 4, .pairs = 3, .gap = 2});
  Random whole_random(3), parts_random(3);
  const auto whole = task.sample(5, whole_random);
  auto parts = task.sample(2, parts_random);
  const auto next = task.sample(3, parts_random);
  parts.tokens.insert(parts.tokens.end(), next.tokens.begin(), next.tokens.end());
  parts.questions.insert(parts.questions.end(), next.questions.begin(), next.questions.end());
  CHECK(parts.tokens == whole.tokens);
  CHECK(parts.questions == whole.questions);
  CHECK(parts_random == whole_random);
}

TEST_CASE(
    "AssociativeRecallTask: keys are those of a row that is shuffled, however many there are") {
  for (const infty::Index n : {1, 2, 7, 40})
    for (const infty::Index count : {infty::Index{0}, n / 2, n}) {
      Random random(static_cast<std::uint64_t>(n)), again = random;
      std::vector<std::int64_t> row(static_cast<std::size_t>(n));
      for (infty::Index i = 0; i < n; ++i) row[static_cast<std::size_t>(i)] = i;
      for (infty::Index i = 0; i < count; ++i)
        std::swap(row[static_cast<std::size_t>(i)],
                  row[static_cast<std::size_t>(i + random.below(n - i))]);
      row.resize(static_cast<std::size_t>(count));
      CHECK(infty::detail::choose(count, n, again) == row);
    }
  const AssociativeRecallTask task({.keys = infty::largest_size, .values = 2, .pairs = 2});
  Random random(1);
  const auto batch = task.sample(1, random);
  CHECK(batch.tokens[0] > 1'000'000);
  CHECK(batch.tokens[0] != batch.tokens[2]);
}

TEST_CASE("AssociativeRecallTask: refuses impossible sizes") {
  CHECK_THROWS_WITH(AssociativeRecallTask({.keys = 3, .pairs = 4}),
                    "[AssociativeRecallTask] keys is 3: it must be at least pairs = 4");
  CHECK_THROWS_AS(AssociativeRecallTask({.values = 0}), infty::ValueError);
  CHECK_THROWS_AS(AssociativeRecallTask({.pairs = 0}), infty::ValueError);
  CHECK_THROWS_AS(AssociativeRecallTask({.gap = -1}), infty::ValueError);
  Random random(1);
  CHECK_THROWS_AS(AssociativeRecallTask({}).sample(-1, random), infty::ValueError);
  constexpr infty::Index huge = std::numeric_limits<infty::Index>::max();
  CHECK_THROWS_WITH(AssociativeRecallTask({.keys = huge, .pairs = huge}),
                    Catch::Contains("[AssociativeRecallTask] keys is "));
  CHECK_THROWS_WITH(AssociativeRecallTask({.values = huge}), Catch::Contains("] values is "));
  CHECK_THROWS_WITH(AssociativeRecallTask({.gap = huge}), Catch::Contains("] gap is "));
}
