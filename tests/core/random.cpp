// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <type_traits>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/eigen/backend.hpp>

#include "support/catch.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Tensor;

static_assert(std::is_trivially_copyable_v<Random> && sizeof(Random) == 24);

namespace {

using Words = std::array<std::uint32_t, 4>;

Words philox(const Words& counter, std::uint32_t key0, std::uint32_t key1) {
  const auto join = [](std::uint32_t low, std::uint32_t high) {
    return (std::uint64_t{high} << 32) | low;
  };
  const auto block = infty::detail::philox(join(key0, key1), join(counter[2], counter[3]),
                                           join(counter[0], counter[1]));
  return {block.word[0], block.word[1], block.word[2], block.word[3]};
}

struct Moments {
  double mean = 0, variance = 0, third = 0, fourth = 0;
};

template <class Draw>
Moments moments(int n, Draw draw) {
  std::vector<double> x(static_cast<std::size_t>(n));
  Moments m;
  for (double& value : x) m.mean += (value = draw()) / n;
  for (const double value : x) {
    const double d = value - m.mean;
    m.variance += d * d / n;
    m.third += d * d * d / n;
    m.fourth += d * d * d * d / n;
  }
  return m;
}

constexpr int draws = 400'000;  // standard error of a mean: the deviation / 632

}  // namespace

TEST_CASE("philox: the known answers of Random123 for philox4x32-10") {
  CHECK(philox({0, 0, 0, 0}, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, ones, ones) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("unit_interval: 53 bits, never 1") {
  CHECK(infty::detail::unit_interval(0, 0) == 0);
  CHECK(infty::detail::unit_interval(0x80000000, 0) == 0.5);
  CHECK(infty::detail::unit_interval(0xffffffff, 0xffffffff) == 1 - 0x1p-53);
  CHECK(infty::detail::unit_interval(0, 0x7ff) == 0);
  CHECK(infty::detail::unit_interval(0, 0x800) == 0x1p-53);
}

TEST_CASE("Random: a draw is a function of seed, stream and counter") {
  Random a(3, 4);
  const double first = a.uniform(), second = a.uniform();
  CHECK(first != second);
  CHECK(a.counter() == 2);
  a.seek(1);
  CHECK(a.uniform() == second);
  Random replay = a;
  CHECK(replay == a);
  CHECK(replay.normal() == a.normal());
  CHECK(Random(3, 4).uniform() == first);
  CHECK(Random(3, 5).uniform() != first);
  CHECK(Random(4, 4).uniform() != first);
}

TEST_CASE("Random: the draws of seed 1, by a second program, as they must stay for ever") {
  Random random(1);
  CHECK(random.uniform() == 0x1.c7d00ce1ca141p-1);
  CHECK(random.uniform() == 0x1.58102837bf8b9p-1);
  CHECK(random.uniform() == 0x1.faad9f8473b64p-3);
  CHECK(random.normal() == Catch::Approx(1.0454458079477615).epsilon(1e-15));
  const Random child = random.split(9);
  CHECK(child.seed() == 0x1af14790ab76612b);
  CHECK(child.stream() == 0xcafb6b939822bc73);
}

TEST_CASE("Random::uniform: the moments of an even distribution") {
  Random random(infty::tests::seed);
  double low = 1, high = 0;
  const Moments m = moments(draws, [&] {
    const double u = random.uniform();
    low = std::min(low, u);
    high = std::max(high, u);
    return u;
  });
  CHECK(low >= 0);
  CHECK(high < 1);
  CHECK(std::abs(m.mean - 0.5) < 5 * 0.2887 / 632);
  CHECK(std::abs(m.variance - 1.0 / 12) < 5 * 0.0745 / 632);
  CHECK(std::abs(m.third) < 5 * 0.0325 / 632 + 1e-3);
}

TEST_CASE("Random::normal: the moments and tails of a normal distribution") {
  Random random(infty::tests::seed);
  int beyond_two = 0;
  const Moments m = moments(draws, [&] {
    const double x = random.normal();
    beyond_two += std::abs(x) > 2;
    return x;
  });
  CHECK(std::abs(m.mean) < 5.0 / 632);
  CHECK(std::abs(m.variance - 1) < 5 * std::sqrt(2.0) / 632);
  CHECK(std::abs(m.third) < 5 * std::sqrt(15.0) / 632);
  CHECK(std::abs(m.fourth - 3) < 5 * std::sqrt(96.0) / 632);
  CHECK(std::abs(beyond_two / double{draws} - 0.0455003) < 5 * 0.2084 / 632);
}

TEST_CASE("Random: neighbouring draws and streams do not know of each other") {
  for (const bool streams : {false, true}) {
    double product = 0;
    Random a(infty::tests::seed, 0), b(infty::tests::seed, streams ? 1 : 0);
    if (!streams) b.uniform();
    for (int i = 0; i < draws; ++i) product += (a.uniform() - 0.5) * (b.uniform() - 0.5) / draws;
    CAPTURE(streams);
    CHECK(std::abs(product) < 5.0 / 12 / 632);
  }
}

TEST_CASE("Random::below: every number, as often as the others") {
  Random random(infty::tests::seed);
  constexpr Index n = 7;
  std::array<int, n> count{};
  for (int i = 0; i < draws; ++i) {
    const Index drawn = random.below(n);
    REQUIRE((drawn >= 0 && drawn < n));
    ++count[static_cast<std::size_t>(drawn)];
  }
  for (const int c : count) CHECK(std::abs(c / double{draws} - 1.0 / n) < 5 * 0.35 / 632);
  CHECK(random.below(1) == 0);
  const Index huge = std::numeric_limits<Index>::max();
  Index most = 0;
  for (int i = 0; i < 100; ++i) most = std::max(most, random.below(huge));
  CHECK(most > huge / 2);
  CHECK(most < huge);
  CHECK_THROWS_WITH(random.below(0), "[Random::below] n is 0: it must be at least 1");
  CHECK_THROWS_AS(random.below(-3), infty::ValueError);
}

TEST_CASE("Random::categorical: draws in proportion to the weights") {
  Random random(infty::tests::seed);
  const std::array<double, 5> weights{0, 1, 3, 0, 4};
  std::array<int, 5> count{};
  for (int i = 0; i < draws; ++i) ++count[static_cast<std::size_t>(random.categorical(weights))];
  CHECK(count[0] == 0);
  CHECK(count[3] == 0);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(std::abs(count[i] / double{draws} - weights[i] / 8) < 5 * 0.5 / 632);
  CHECK(random.categorical(std::array{0.0, 1e-300, 0.0}) == 1);
}

TEST_CASE("Random::categorical: refuses weights that are no weights") {
  Random random(1);
  const double inf = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH(random.categorical(std::array{1.0, -1.0}),
                    "[Random::categorical] a weight is -1");
  CHECK_THROWS_AS(random.categorical(std::array{1.0, inf}), infty::ValueError);
  CHECK_THROWS_AS(random.categorical(std::array{1.0, std::nan("")}), infty::ValueError);
  CHECK_THROWS_AS(random.categorical(std::array{1e308, 1e308}), infty::ValueError);
  CHECK_THROWS_WITH(random.categorical(std::array{0.0, 0.0}),
                    "[Random::categorical] the weights sum to 0");
  CHECK_THROWS_AS(random.categorical(std::span<const double>{}), infty::ValueError);
  CHECK(random.counter() == 0);
}

TEST_CASE("Random::split: generators of their own, by the parent's identity alone") {
  Random parent(5);
  const Random child = parent.split(7);
  parent.uniform();
  CHECK(parent.split(7) == child);
  CHECK(child.counter() == 0);
  std::set<double> first;
  for (std::uint64_t i = 0; i < 1000; ++i) first.insert(parent.split(i).uniform());
  for (std::uint64_t i = 0; i < 1000; ++i) first.insert(parent.split(i).split(0).uniform());
  CHECK(first.size() == 2000);
  CHECK_FALSE(Random(6).split(7) == child);
  CHECK_FALSE(Random(5, 1).split(7) == child);
}

TEMPLATE_LIST_TEST_CASE("fill_uniform: element i is draw i", "", infty::tests::Types) {
  using T = typename TestType::T;
  using X = Tensor<T, typename TestType::B>;
  Random random(infty::tests::seed), same = random;
  X x(infty::Shape{100, 251});
  fill_uniform(x, -2, 3, random);
  CHECK(random.counter() == static_cast<std::uint64_t>(x.size()));
  for (const T value : x.to_vector()) {
    REQUIRE(value == static_cast<T>(std::fma(5.0, same.uniform(), -2.0)));
    REQUIRE((value >= T(-2) && value <= T(3)));
  }
  X next(infty::Shape{10});
  fill_uniform(next, 0, 1, random);
  CHECK(next.to_vector()[0] == static_cast<T>(same.uniform()));
}

TEMPLATE_LIST_TEST_CASE("fill_uniform: the bits are specified, whatever is contracted", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  Random random(infty::tests::seed), same = random;
  Tensor<T, typename TestType::B> x(infty::Shape{5000});
  fill_uniform(x, -1, 2, random);
  bool twice_differs = false;
  for (const T value : x.to_vector()) {
    // 3 u - 1 = (3 k - 2^53) 2^-53 with an integer k: exact in 64 bits, rounded by the conversion.
    const double u = same.uniform();
    const auto k = static_cast<std::int64_t>(u * 0x1p53);
    const double once = static_cast<double>(3 * k - (std::int64_t{1} << 53)) * 0x1p-53;
    REQUIRE(value == static_cast<T>(once));
    const volatile double product = 3 * u;
    twice_differs = twice_differs || product - 1 != once;
  }
  CHECK(twice_differs);  // so that this test tells the two apart
}

TEMPLATE_LIST_TEST_CASE("fill_normal: element i is draw i", "", infty::tests::Types) {
  using T = typename TestType::T;
  Random random(infty::tests::seed), same = random;
  for (const auto& shape : {infty::Shape{17, 3}, {0}, {123, 457}}) {  // the last in many pieces
    Tensor<T, typename TestType::B> x(shape);
    infty::tests::with_threads(3, [&] { fill_normal(x, 1, 0.5, random); });
    for (const T value : x.to_vector())
      REQUIRE(value == static_cast<T>(std::fma(0.5, same.normal(), 1.0)));
    CHECK(random == same);
  }
}

TEST_CASE("fill: filling in pieces is filling in one go") {
  Random one(1), pieces(1);
  Tensor<float> whole(infty::Shape{10}), parts(infty::Shape{10});
  fill_uniform(whole, 0, 1, one);
  auto head = parts.slice(0, 4), tail = parts.slice(4, 10);
  fill_uniform(head, 0, 1, pieces);
  fill_uniform(tail, 0, 1, pieces);
  CHECK(parts.to_vector() == whole.to_vector());
  CHECK(one == pieces);
}

TEST_CASE("WithoutDraws: fills write zeros, and what is drawn afterwards is as ever") {
  const auto run = [](bool drawing) {
    infty::Random random(3);
    auto x = infty::Tensor<double>::full({7}, 5), y = x;
    {
      std::optional<infty::detail::WithoutDraws> guard;
      if (!drawing) guard.emplace();
      infty::fill_uniform(x, -1, 1, random);
      y = infty::Tensor<double>::full({4}, 5);
      infty::fill_normal(y, 2, 3, random);
    }
    if (!drawing) {
      CHECK(x.to_vector() == std::vector<double>(7, 0));
      CHECK(y.to_vector() == std::vector<double>(4, 0));
    }
    infty::fill_normal(x, 0, 1, random);
    return x.to_vector();
  };
  CHECK(run(true) == run(false));
  CHECK(run(true) != std::vector<double>(7, 0));
}
