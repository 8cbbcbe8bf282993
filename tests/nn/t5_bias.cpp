// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <vector>

#include <infty/nn/t5_bias.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::BucketBias;
using infty::Index;
using infty::Shape;
using infty::T5Buckets;
using infty::Tensor;
using infty::Variable;

TEST_CASE("T5Buckets: near distances have buckets of their own, far ones share them") {
  const T5Buckets rule;
  // As torch computes 16 + floor(16 log(n / 16) / log(8)), at most 31.
  const std::vector<std::pair<Index, Index>> known{
      {-3, 0},  {0, 0},   {15, 15}, {16, 16},  {18, 16},  {19, 17},  {32, 21},
      {63, 26}, {64, 26}, {65, 26}, {112, 30}, {113, 31}, {128, 31}, {100000, 31}};
  for (const auto& [distance, bucket] : known) {
    CAPTURE(distance);
    CHECK(rule(distance) == bucket);
  }
  Index before = 0;
  for (Index n = 0; n < 300; ++n) {
    CHECK((rule(n) >= before && rule(n) < 32));
    before = rule(n);
  }
}

TEST_CASE("T5Buckets: both ways, each side has half of them") {
  const T5Buckets rule{.buckets = 8, .max_distance = 16, .both_ways = true};
  CHECK(rule(0) == 0);
  CHECK(rule(1) == 1);
  CHECK(rule(100) == 3);
  CHECK(rule(-1) == 5);
  CHECK(rule(-100) == 7);
}

TEST_CASE("T5Buckets: what cannot be is refused") {
  CHECK_THROWS_AS((T5Buckets{.buckets = 1}.validate()), infty::ValueError);
  CHECK_THROWS_AS((T5Buckets{.buckets = 32, .max_distance = 16}.validate()), infty::ValueError);
  CHECK_THROWS_AS((T5Buckets{.buckets = 6, .max_distance = 1, .both_ways = true}.validate()),
                  infty::ValueError);
  CHECK_THROWS_AS((T5Buckets{.buckets = 9, .both_ways = true}.validate()), infty::ValueError);
  CHECK_THROWS_AS(BucketBias<float>(0, 1), infty::ValueError);
  for (const bool both_ways : {false, true}) {
    const T5Buckets buckets{.both_ways = both_ways};
    CHECK(buckets(std::numeric_limits<Index>::min()) == (both_ways ? 31 : 0));
    CHECK(buckets(std::numeric_limits<Index>::max()) == (both_ways ? 15 : 31));
  }
}

TEMPLATE_LIST_TEST_CASE("BucketBias: a number for each distance and head, by any rule", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  BucketBias<T, B> bias(2, 3);
  bias.weight.value().copy_from(Tensor<T, B>::from({2, 3}, {1, 2, 3, 4, 5, 6}));
  const auto odd = [](Index distance) { return (distance % 2 + 2) % 2; };
  infty::Tape tape;
  const auto y = bias.by_distance(-1, 4, odd);
  CHECK(y.value().to_vector() == std::vector<T>{4, 1, 4, 1, 5, 2, 5, 2, 6, 3, 6, 3});
  tape.backward(y, Tensor<T, B>::from({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  CHECK(bias.weight.grad().to_vector() == std::vector<T>{6, 14, 22, 4, 12, 20});
  CHECK_THROWS_AS(bias.by_distance(0, 3, [](Index n) { return n; }), infty::ValueError);
}
