// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/data/ranking.hpp>
#include <infty/eigen/backend.hpp>

#include "support/catch.hpp"

using Order = std::vector<std::int64_t>;

using infty::accuracy;
using infty::kendall_tau;
using infty::Random;
using infty::rank_by_frequency;
using infty::rank_by_recent_frequency;
using infty::teacher_forced;
using infty::ValueError;

namespace {

Order identity(std::int64_t n) {
  Order order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Order random_permutation(std::int64_t n, Random& random) {
  Order order = identity(n);
  for (std::int64_t i = n - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(random.below(i + 1))]);
  return order;
}

// The definition, with a rank for each symbol: the sum over all ordered pairs of the product of
// the signs of the rank differences, halved.
double tau_by_definition(const Order& predicted, const Order& truth) {
  const auto n = static_cast<std::int64_t>(truth.size());
  const auto rank = [&](const Order& order, std::int64_t symbol) {
    std::set<std::int64_t> before;
    for (const std::int64_t token : order) {
      if (token == symbol) return static_cast<std::int64_t>(before.size());
      if (token >= 0 && token < n) before.insert(token);
    }
    return n;
  };
  const auto sign = [](std::int64_t x) { return x > 0 ? 1 : x < 0 ? -1 : 0; };
  int sum = 0;
  for (std::int64_t a = 0; a < n; ++a)
    for (std::int64_t b = 0; b < n; ++b)
      sum += sign(rank(predicted, a) - rank(predicted, b)) * sign(rank(truth, a) - rank(truth, b));
  return sum / static_cast<double>(n * (n - 1));
}

}  // namespace

TEST_CASE("rank_by_frequency: the paper's example") {
  CHECK(rank_by_frequency(Order{1, 2, 1, 3, 1, 0, 3, 1, 3, 2}, 4) == Order{1, 3, 2, 0});
}

TEST_CASE("rank_by_frequency: ties by first occurrence, absent symbols last by number") {
  CHECK(rank_by_frequency(Order{3, 1, 1, 3, 2}, 6) == Order{3, 1, 2, 0, 4, 5});
  CHECK(rank_by_frequency(Order{1, 3, 3, 1, 2}, 6) == Order{1, 3, 2, 0, 4, 5});
  CHECK(rank_by_frequency(Order{}, 3) == Order{0, 1, 2});
  CHECK(rank_by_frequency(Order{0, 0}, 1) == Order{0});
}

TEST_CASE("rank_by_frequency: is the permutation sorted by (count, first occurrence, number)") {
  Random random(infty::tests::seed);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const std::int64_t symbols = 1 + random.below(8);
    Order tokens(static_cast<std::size_t>(random.below(30)));
    for (auto& token : tokens) token = random.below(symbols);
    const Order order = rank_by_frequency(tokens, symbols);
    Order sorted = order;
    std::sort(sorted.begin(), sorted.end());
    REQUIRE(sorted == identity(symbols));
    for (std::size_t i = 1; i < order.size(); ++i) {
      const std::int64_t a = order[i - 1], b = order[i];
      const auto count_a = std::count(tokens.begin(), tokens.end(), a);
      const auto count_b = std::count(tokens.begin(), tokens.end(), b);
      REQUIRE(count_a >= count_b);
      if (count_a != count_b) continue;
      const auto first_a = std::find(tokens.begin(), tokens.end(), a);
      const auto first_b = std::find(tokens.begin(), tokens.end(), b);
      REQUIRE((first_a < first_b || (first_a == tokens.end() && a < b)));
    }
  }
}

TEST_CASE("rank_by_recent_frequency: counts the last tokens only") {
  const Order tokens{0, 0, 0, 0, 1, 2, 2};
  CHECK(rank_by_recent_frequency(tokens, 3, 3) == Order{2, 1, 0});
  CHECK(rank_by_recent_frequency(tokens, 3, 2) == Order{2, 0, 1});
  CHECK(rank_by_recent_frequency(tokens, 3, 0) == Order{0, 1, 2});
  CHECK(rank_by_recent_frequency(tokens, 3, 7) == rank_by_frequency(tokens, 3));
  CHECK(rank_by_recent_frequency(tokens, 3, 1000) == rank_by_frequency(tokens, 3));
}

TEST_CASE("rank_by_frequency: refuses wrong tokens and sizes") {
  CHECK_THROWS_AS(infty::rank_by_frequency({}, infty::Index{1} << 61), infty::ValueError);
  CHECK_THROWS_WITH(rank_by_frequency(Order{0, 3}, 3),
                    "[rank_by_frequency] token 1 is 3: it must be in [0, 3)");
  CHECK_THROWS_AS(rank_by_frequency(Order{-1}, 3), ValueError);
  CHECK_THROWS_AS(rank_by_frequency(Order{}, 0), ValueError);
  CHECK_THROWS_AS(rank_by_recent_frequency(Order{0}, 3, -1), ValueError);
}

TEST_CASE("kendall_tau: by hand") {
  CHECK(kendall_tau(Order{0, 1, 2, 3}, Order{0, 1, 2, 3}) == 1);
  CHECK(kendall_tau(Order{3, 2, 1, 0}, Order{0, 1, 2, 3}) == -1);
  CHECK(kendall_tau(Order{1, 0, 2, 3}, Order{0, 1, 2, 3}) == Approx(4.0 / 6));
  CHECK(kendall_tau(Order{2, 0, 1}, Order{2, 0, 1}) == 1);
  CHECK(kendall_tau(Order{0, 1}, Order{1, 0}) == -1);
}

TEST_CASE("kendall_tau: predictions that repeat, omit or are no symbols") {
  const Order truth{0, 1, 2, 3};
  CHECK(kendall_tau(Order{}, truth) == 0);
  CHECK(kendall_tau(Order{4, 4, -1, 9}, truth) == 0);
  // 0 is before 1, 2 and 3, which tie: 3 of 6 pairs.
  CHECK(kendall_tau(Order{0, 0, 0, 0}, truth) == 0.5);
  // 3 before all the others, which tie.
  CHECK(kendall_tau(Order{3, 3, 3, 3}, truth) == -0.5);
  CHECK(kendall_tau(Order{0, 1, 1, 3}, truth) == Approx(4.0 / 6));
  CHECK(kendall_tau(Order{0, 0, 1, 2, 4, 3}, truth) == 1);
}

TEST_CASE("kendall_tau: agrees with its definition on random predictions") {
  Random random(infty::tests::seed);
  for (int repeat = 0; repeat < 500; ++repeat) {
    const std::int64_t n = 2 + random.below(7);
    const Order truth = random_permutation(n, random);
    Order predicted = random_permutation(n, random);
    REQUIRE(kendall_tau(predicted, truth) ==
            Approx(tau_by_definition(predicted, truth)).margin(1e-12));
    REQUIRE(kendall_tau(predicted, truth) == kendall_tau(truth, predicted));
    for (auto& token : predicted)
      if (random.below(3) == 0) token = random.below(n + 3) - 1;
    const double tau = kendall_tau(predicted, truth);
    REQUIRE(tau == Approx(tau_by_definition(predicted, truth)).margin(1e-12));
    REQUIRE(std::abs(tau) <= 1);
  }
}

TEST_CASE("kendall_tau: refuses a truth that is no permutation") {
  CHECK_THROWS_AS(kendall_tau(Order{0}, Order{0}), ValueError);
  CHECK_THROWS_AS(kendall_tau(Order{0, 1}, Order{}), ValueError);
  CHECK_THROWS_AS(kendall_tau(Order{0, 1}, Order{0, 0}), ValueError);
  CHECK_THROWS_AS(kendall_tau(Order{0, 1}, Order{0, 2}), ValueError);
  CHECK_THROWS_AS(kendall_tau(Order{0, 1}, Order{-1, 0}), ValueError);
}

TEST_CASE("accuracy: the share of places that agree") {
  CHECK(accuracy(Order{0, 1, 2, 3}, Order{0, 2, 1, 3}) == 0.5);
  CHECK(accuracy(Order{1}, Order{1}) == 1);
  CHECK_THROWS_WITH(accuracy(Order{1}, Order{1, 2}), "[accuracy] 1 predictions for 2 places");
  CHECK_THROWS_AS(accuracy(Order{}, Order{}), ValueError);
}

TEST_CASE("teacher_forced: each place is predicted with the true places before it in sight") {
  CHECK(teacher_forced(Order{0, 1, 2, 3}, Order{1, 0, 3, 2}) == Order{0, 0, 2, 2});
  CHECK(teacher_forced(Order{3, 2, 1, 0}, Order{0, 1, 2, 3}) == Order{3, 3, 3, 3});
  CHECK(teacher_forced(Order{2, 0, 1}, Order{2, 0, 1}) == Order{2, 0, 1});
  CHECK_THROWS_AS(teacher_forced(Order{0, 1}, Order{0, 1, 2}), ValueError);
  CHECK_THROWS_AS(teacher_forced(Order{0, 0}, Order{0, 1}), ValueError);
  CHECK_THROWS_AS(teacher_forced(Order{0, 1}, Order{0, 5}), ValueError);
}

TEST_CASE("chance_accuracy: what random orders reach") {
  CHECK(infty::chance_accuracy(1, false) == 1);
  CHECK(infty::chance_accuracy(1, true) == 1);
  CHECK(infty::chance_accuracy(4, true) == Approx((1 + 1. / 2 + 1. / 3 + 1. / 4) / 4));
  CHECK_THROWS_AS(infty::chance_accuracy(0, true), ValueError);
  // Of many symbols the sum has a closed form, to which the terms lead up.
  const double n = 10'000'000, last = infty::chance_accuracy(10'000'000, true) * n;
  CHECK(infty::chance_accuracy(10'000'001, true) * (n + 1) ==
        Approx(last + 1 / (n + 1)).epsilon(1e-12));
  CHECK(infty::chance_accuracy(1'000'000'000'000, true) == Approx(28.208236780830582e-12));
  constexpr int repeats = 4000;
  Random random(infty::tests::seed);
  const Order truth = random_permutation(10, random);
  double in_freedom = 0, forced = 0, tau = 0;
  for (int i = 0; i < repeats; ++i) {
    const Order guess = random_permutation(10, random);
    in_freedom += accuracy(guess, truth) / repeats;
    forced += accuracy(teacher_forced(guess, truth), truth) / repeats;
    tau += kendall_tau(guess, truth) / repeats;
  }
  // A mean of 4,000 has a standard deviation of at most 0.004 here; five of them.
  CHECK(in_freedom == Approx(infty::chance_accuracy(10, false)).margin(0.02));
  CHECK(forced == Approx(infty::chance_accuracy(10, true)).margin(0.02));
  CHECK(tau == Approx(0).margin(0.02));
}
