// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <infty/data/copy.hpp>

#include "support/catch.hpp"

using infty::CopyTask;
using infty::Index;
using infty::Random;

TEST_CASE("CopyTask: symbols, blanks, and the symbols again") {
  const CopyTask task({.symbols = 3, .items = 4, .gap = 5});
  CHECK(task.length() == 9);
  CHECK(task.blank() == 3);
  CHECK(task.separator() == 4);
  CHECK(task.vocabulary() == 5);
  Random random(infty::tests::seed);
  const auto batch = task.sample(200, random);
  REQUIRE(batch.tokens.size() == 200 * 9);
  REQUIRE(batch.answer.size() == 200 * 4);
  std::vector<Index> count(3, 0);
  for (std::size_t row = 0; row < 200; ++row) {
    const auto tokens = std::span(batch.tokens).subspan(9 * row, 9);
    const auto answer = std::span(batch.answer).subspan(4 * row, 4);
    CHECK(std::equal(answer.begin(), answer.end(), tokens.begin()));
    for (const std::int64_t token : tokens.last(5)) CHECK(token == 3);
    for (const std::int64_t symbol : answer) {
      REQUIRE((symbol >= 0 && symbol < 3));
      ++count[static_cast<std::size_t>(symbol)];
    }
  }
  // 800 draws of probability 1/3: a standard deviation of 13.3; five of them.
  for (const Index n : count) CHECK(std::abs(static_cast<double>(n) - 800. / 3) < 67);
}

TEST_CASE("CopyTask: the same draws whatever the size of the batch") {
  const CopyTask task({.symbols = 4, .items = 3, .gap = 2});
  Random whole_random(3), parts_random(3);
  const auto whole = task.sample(5, whole_random);
  auto parts = task.sample(2, parts_random);
  for (const Index size : {0, 3}) {
    const auto next = task.sample(size, parts_random);
    parts.tokens.insert(parts.tokens.end(), next.tokens.begin(), next.tokens.end());
    parts.answer.insert(parts.answer.end(), next.answer.begin(), next.answer.end());
  }
  CHECK(parts.tokens == whole.tokens);
  CHECK(parts.answer == whole.answer);
  CHECK(parts_random == whole_random);
  CHECK(task.sample(5, whole_random).tokens != whole.tokens);
}

TEST_CASE("CopyTask: refuses impossible sizes") {
  CHECK_THROWS_WITH(CopyTask({.symbols = 0}),
                    "[CopyTask] symbols is 0, items 10, gap 100: they must be at least 1, 1 and 0");
  CHECK_THROWS_AS(CopyTask({.items = 0}), infty::ValueError);
  CHECK_THROWS_AS(CopyTask({.gap = -1}), infty::ValueError);
  CHECK(CopyTask({.symbols = 1, .items = 1, .gap = 0}).length() == 1);
  Random random(1);
  CHECK_THROWS_AS(CopyTask({}).sample(-1, random), infty::ValueError);
  constexpr infty::Index huge = std::numeric_limits<infty::Index>::max();
  CHECK_THROWS_WITH(CopyTask({.symbols = huge}), Catch::Contains("[CopyTask] symbols is "));
  CHECK_THROWS_WITH(CopyTask({.items = huge}), Catch::Contains("[CopyTask] items is "));
  CHECK_THROWS_WITH(CopyTask({.gap = huge}), Catch::Contains("[CopyTask] gap is "));
  CHECK_THROWS_WITH(CopyTask({.gap = infty::Index{1} << 40}).sample(infty::Index{1} << 40, random),
                    Catch::Contains("[CopyTask::sample] items + gap is 1099511627786"));
}
