// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/parallel/thread_communicator.hpp>
#include <infty/parallel/tree_sum.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::on_threads;
using infty::Random;
using infty::Reduction;
using infty::SelfCommunicator;
using infty::Shards;
using infty::ThreadCommunicator;
using infty::tree_sum;

namespace tree_sum_tests {

// Numbers of all sizes, so that every other order of the additions gives other bits.
template <class T>
void draw(Index shard, std::span<T> out) {
  Random random(17, static_cast<std::uint64_t>(shard));
  for (T& value : out)
    value = static_cast<T>(std::ldexp(random.uniform() - .5, static_cast<int>(random.below(24))));
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// The definition: every pair of halves, the left one the larger.
template <class T>
std::vector<T> by_definition(Index first, Index last, Index size) {
  std::vector<T> sum(static_cast<std::size_t>(size));
  if (last - first == 1) {
    draw<T>(first, sum);
    return sum;
  }
  const Index middle = first + (last - first + 1) / 2;
  sum = by_definition<T>(first, middle, size);
  const auto right = by_definition<T>(middle, last, size);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + right[i];
  return sum;
}

TEMPLATE_TEST_CASE("tree_sum: the bits of its definition on 1 to 9 ranks", "", float, double) {
  using T = TestType;
  for (const Index shards : {1, 2, 3, 5, 8, 9, 12, 16, 31})
    for (const Index size : {0, 1, 2, 3, 7, 64, 101}) {
      const auto expected = by_definition<T>(0, shards, size);
      for (int count = 1; count <= 9 && count <= shards; ++count) {
        CAPTURE(shards, size, count);
        std::vector<char> same(static_cast<std::size_t>(count), 0);
        on_threads(count, [&](ThreadCommunicator& ranks) {
          const auto sum = tree_sum<T>(ranks, shards, size, draw<T>);
          same[static_cast<std::size_t>(ranks.rank())] = same_bits(sum, expected) ? 1 : 0;
        });
        CHECK(same == std::vector<char>(same.size(), 1));
      }
    }
}

TEST_CASE("tree_sum: another order of the same numbers has other bits") {
  // Else the test above would say nothing.
  const Index shards = 16, size = 101;
  std::vector<float> in_order(101, 0), one(101);
  for (Index shard = 0; shard < shards; ++shard) {
    draw<float>(shard, one);
    for (std::size_t i = 0; i < one.size(); ++i) in_order[i] += one[i];
  }
  CHECK_FALSE(same_bits(in_order, by_definition<float>(0, shards, size)));
}

TEST_CASE("tree_sum: a rank makes its own shards only, each once, in their order") {
  std::vector<std::vector<Index>> made(3);
  on_threads(3, [&](ThreadCommunicator& ranks) {
    tree_sum<float>(ranks, 8, 2, [&](Index shard, std::span<float>) {
      made[static_cast<std::size_t>(ranks.rank())].push_back(shard);
    });
  });
  CHECK(made == std::vector<std::vector<Index>>{{0, 1}, {2, 3, 4}, {5, 6, 7}});
}

TEST_CASE("Shards: the fast sum is that of all shards, to the rounding") {
  const Index count = 12, size = 33;
  const auto expected = by_definition<double>(0, count, size);
  for (int n = 1; n <= 5; ++n) {
    std::vector<std::vector<double>> sums(static_cast<std::size_t>(n));
    on_threads(n, [&](ThreadCommunicator& ranks) {
      const Shards shards(ranks, count, Reduction::fast);
      sums[static_cast<std::size_t>(ranks.rank())] = shards.sum<double>(size, draw<double>);
    });
    for (const auto& sum : sums) {
      REQUIRE(sum.size() == expected.size());
      for (std::size_t i = 0; i < sum.size(); ++i)
        CHECK(sum[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-6));
    }
  }
}

TEST_CASE("Shards: rows, sums of small values, and what cannot be") {
  SelfCommunicator self;
  const Shards shards(self, 3);
  CHECK(shards.own() == infty::ShardRange{0, 3});
  CHECK(shards.rows_of(0, 8) == infty::ShardRange{0, 2});
  // More rows than a product of them with a shard has room for.
  const Index many = Index{1} << 62;
  for (Index shard = 0; shard < 3; ++shard) {
    const infty::ShardRange range = shards.rows_of(shard, many);
    CHECK(range.count() - many / 3 == (shard == 2 ? 1 : 0));
    CHECK(range.first == shard * (many / 3));
  }
  CHECK(shards.rows_of(1, 8) == infty::ShardRange{2, 5});
  CHECK(shards.rows_of(2, 8) == infty::ShardRange{5, 8});
  CHECK(shards.sum_of(std::vector<double>{1e30, 1, -1e30}) == 0);
  CHECK(shards.sum_of(std::vector<double>{1e30, -1e30, 1}) == 1);
  CHECK_THROWS_AS(shards.sum_of(std::vector<double>{1}), infty::ShapeError);
  CHECK_THROWS_AS(shards.rows_of(3, 8), infty::ValueError);
  CHECK_THROWS_AS(shards.rows_of(0, 2), infty::ValueError);
  CHECK_THROWS_AS(Shards(self, 0), infty::ValueError);
  CHECK_THROWS_AS(tree_sum<float>(self, 1, -1, draw<float>), infty::ValueError);
  // What a shard throws comes out, and all ranks end.
  CHECK_THROWS_WITH(on_threads(4,
                               [](ThreadCommunicator& ranks) {
                                 const Shards of(ranks, 8);
                                 of.sum<float>(5, [](Index shard, std::span<float>) {
                                   infty::require(shard != 5, "shard", "five");
                                 });
                               }),
                    "[shard] five");
}

}  // namespace tree_sum_tests
