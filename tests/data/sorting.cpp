// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <infty/data/sorting.hpp>
#include <infty/eigen/backend.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::Random;
using infty::SortingBatch;
using infty::SortingTask;
using infty::ValueError;

namespace {

using Frequencies = std::vector<double>;

Frequencies frequencies(std::span<const std::int64_t> tokens, Index symbols) {
  Frequencies out(static_cast<std::size_t>(symbols), 0);
  for (const std::int64_t token : tokens)
    out[static_cast<std::size_t>(token)] += 1 / static_cast<double>(tokens.size());
  return out;
}

}  // namespace

TEST_CASE("SortingTask: rows of symbols, each with its exact answer") {
  const SortingTask task({.symbols = 5, .length = 40});
  CHECK(task.vocabulary() == 6);
  CHECK(task.separator() == 5);
  Random random(infty::tests::seed);
  const SortingBatch batch = task.sample(7, random);
  REQUIRE(batch.tokens.size() == 7 * 40);
  REQUIRE(batch.answer.size() == 7 * 5);
  for (const std::int64_t token : batch.tokens) REQUIRE((token >= 0 && token < 5));
  for (std::size_t b = 0; b < 7; ++b) {
    const auto row = std::span(batch.tokens).subspan(b * 40, 40);
    const auto answer = std::span(batch.answer).subspan(b * 5, 5);
    const auto exact = infty::rank_by_frequency(row, 5);
    CHECK(std::equal(answer.begin(), answer.end(), exact.begin(), exact.end()));
  }
}

TEST_CASE("SortingTask: the same draws whatever the size of the batch") {
  const SortingTask task({.symbols = 4, .length = 30});
  Random whole_random(3), parts_random(3);
  const SortingBatch whole = task.sample(5, whole_random);
  SortingBatch parts = task.sample(2, parts_random);
  for (const Index size : {0, 1, 2}) {
    const SortingBatch next = task.sample(size, parts_random);
    parts.tokens.insert(parts.tokens.end(), next.tokens.begin(), next.tokens.end());
    parts.answer.insert(parts.answer.end(), next.answer.begin(), next.answer.end());
  }
  CHECK(parts.tokens == whole.tokens);
  CHECK(parts.answer == whole.answer);
  CHECK(parts_random == whole_random);
  CHECK(whole_random.counter() == 5);
}

TEST_CASE("SortingTask: seeds, rows and later batches differ") {
  const SortingTask task({.symbols = 20, .length = 100});
  Random random(1), other(2);
  const auto first = task.sample(2, random).tokens, second = task.sample(2, random).tokens;
  CHECK(first != second);
  CHECK(first != task.sample(2, other).tokens);
  CHECK_FALSE(std::equal(first.begin(), first.begin() + 100, first.begin() + 100));
}

TEST_CASE("SortingTask: the distribution moves evenly from the first to the last") {
  constexpr Index symbols = 4, length = 200'000, window = length / 10;
  const SortingTask task({.symbols = symbols, .length = length});
  Random random(infty::tests::seed);
  const SortingBatch batch = task.sample(4, random);
  double largest_move = 0;
  for (std::size_t b = 0; b < 4; ++b) {
    const auto row = std::span(batch.tokens).subspan(b * length, length);
    const Frequencies begin = frequencies(row.first(window), symbols);
    const Frequencies middle = frequencies(row.subspan((length - window) / 2, window), symbols);
    const Frequencies end = frequencies(row.last(window), symbols);
    // Over a window the mean of r is 0.05, 0.5 and 0.95, and p is affine in r. A frequency of
    // 20,000 draws has a standard deviation of at most 0.0036; five of them, over both terms.
    for (std::size_t s = 0; s < symbols; ++s) {
      CHECK(middle[s] == Approx((begin[s] + end[s]) / 2).margin(0.022));
      largest_move = std::max(largest_move, std::abs(end[s] - begin[s]));
    }
    // Weights of 1 to 9: no symbol is more than nine times as likely as another.
    for (const Frequencies& at : {begin, end}) {
      const auto [low, high] = std::minmax_element(at.begin(), at.end());
      CHECK(*high <= 9.5 * *low);
    }
  }
  CHECK(largest_move > 0.1);
}

TEST_CASE(
    "SortingTask: weights are uniform on 1 to 9 and the last token is from the last of them") {
  // One token, r = 1: symbol 0 has the mean probability E[w0 / (w0 + w1)] = 1/2.
  const SortingTask single({.symbols = 2, .length = 1});
  Random random(infty::tests::seed);
  constexpr Index rows = 20'000;
  const auto tokens = single.sample(rows, random).tokens;
  // Standard deviation 0.0035; five of them.
  CHECK(frequencies(tokens, 2)[0] == Approx(0.5).margin(0.018));

  // The last two tokens of a long sequence are two draws from p1: they agree with the
  // probability E[(w0^2 + w1^2) / (w0 + w1)^2].
  const SortingTask task({.symbols = 2, .length = 500});
  double agree = 0, expected = 0;
  for (int w0 = 1; w0 <= 9; ++w0)
    for (int w1 = 1; w1 <= 9; ++w1)
      expected += (w0 * w0 + w1 * w1) / (81.0 * (w0 + w1) * (w0 + w1));
  constexpr Index pairs = 4'000;
  const auto sequences = task.sample(pairs, random).tokens;
  for (std::size_t b = 1; b <= pairs; ++b)
    agree += sequences[500 * b - 1] == sequences[500 * b - 2] ? 1.0 / pairs : 0;
  // Standard deviation 0.0078, and r of the last but one is 0.998; five of them.
  CHECK(agree == Approx(expected).margin(0.04));
}

TEST_CASE("SortingTask: the last tokens alone do not tell the answer") {
  constexpr Index symbols = 10, length = 512, window = 128, rows = 200;
  const SortingTask task({.symbols = symbols, .length = length});
  Random random(infty::tests::seed);
  const SortingBatch batch = task.sample(rows, random);
  double all = 0, recent = 0;
  for (std::size_t b = 0; b < rows; ++b) {
    const auto row = std::span(batch.tokens).subspan(b * length, length);
    const auto truth = std::span(batch.answer).subspan(b * symbols, symbols);
    all += infty::accuracy(infty::rank_by_frequency(row, symbols), truth) / rows;
    recent += infty::accuracy(infty::rank_by_recent_frequency(row, symbols, window), truth) / rows;
  }
  CHECK(all == Approx(1));
  CHECK(recent < 0.5);
  CHECK(recent > infty::chance_accuracy(symbols, false));
}

TEST_CASE("SortingTask: refuses impossible sizes") {
  CHECK_THROWS_WITH(SortingTask({.symbols = 1}),
                    "[SortingTask] symbols is 1: it must be at least 2");
  CHECK_THROWS_AS(SortingTask({.symbols = -3}), ValueError);
  CHECK_THROWS_WITH(SortingTask({.length = 0}), "[SortingTask] length is 0: it must be at least 1");
  Random random(1);
  CHECK_THROWS_AS(SortingTask({}).sample(-1, random), ValueError);
  // 2^32 rows of 2^32 tokens: the number of all is 0 once it has wrapped around.
  CHECK_THROWS_WITH(SortingTask({.length = Index{1} << 32}).sample(Index{1} << 32, random),
                    Catch::Contains("[SortingTask::sample] batch is 4294967296: with length ="));
  CHECK_THROWS_WITH(SortingTask({.symbols = Index{1} << 62}),
                    Catch::Contains("[SortingTask] symbols is 4611686018427387904"));
}
