// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <infty/core/bfloat16.hpp>
#include <infty/memory/ops/nearest.hpp>
#include <infty/thrust/kernels/nearest.hpp>

#include "support/catch.hpp"
#include "support/nearest_case.hpp"
#include "support/types.hpp"
#if !defined(INFTY_TEST_CUDA)
#include "support/item_orders.hpp"
#endif

using infty::BFloat16;
using infty::Index;
using infty::tests::found_by;
using infty::tests::NearestCase;

namespace nearest_kernel_tests {

/// Checks that tiles find what the composition finds, of numbers whose scores are exact.
template <class Stored, class T, class B>
void check_whole(NearestCase<T, B> c) {
  static_assert(infty::detail::HasKernel<infty::ComposedNearest<B>>);
  c.whole = true;
  CAPTURE(c.queries, c.heads, c.key_heads, c.head_dim, c.k, c.block, c.counts, c.hidden);
  const auto tiled = found_by<typename B::FusedNearest, Stored>(c);
  const auto composed = found_by<infty::ComposedNearest<B>, Stored>(c);
  CHECK(tiled.second == composed.second);
  CHECK(tiled.first == composed.first);
}

}  // namespace nearest_kernel_tests

using namespace nearest_kernel_tests;

TEMPLATE_LIST_TEST_CASE("nearest: the tiles find what the composition finds, ties and all", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index queries : {1, 3, 17, 70})
    for (const auto& [heads, key_heads] : {std::pair<Index, Index>{1, 1}, {2, 2}, {3, 1}})
      for (const Index head_dim : {1, 4, 7, 33})
        for (const Index k : {1, 5, 40}) {
          const NearestCase<T, B> c{.queries = queries,
                                    .heads = heads,
                                    .key_heads = key_heads,
                                    .head_dim = head_dim,
                                    .k = k,
                                    .block = 50,
                                    .counts = {0, 4, 229},
                                    .hidden = k == 5 ? 3 : 0};
          check_whole<T>(c);
          check_whole<BFloat16>(c);
        }
}

TEMPLATE_LIST_TEST_CASE("nearest: the tiles at the edges of their sizes", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Blocks that tiles fill exactly, or not; rows whose first entries are forgotten.
  for (const Index block : {1, 63, 64, 512})
    for (const Index count : {63, 64, 65, 300})
      check_whole<T, T, B>(
          {.queries = 64, .head_dim = 8, .k = 32, .block = block, .counts = {count}, .hidden = 1});
  // Few queries: the keys are divided among blocks, and what these found is joined.
  for (const Index queries : {1, 2, 9})
    for (const Index k : {1, 32, 100})
      check_whole<T, T, B>({.queries = queries, .head_dim = 3, .k = k, .counts = {9000, 30, 4097}});
  // More wanted than tiles have room for beside such heads: fewer queries and keys a tile, or none.
  for (const Index k : {300, 1000, 5000})
    check_whole<T, T, B>({.queries = 70, .head_dim = 40, .k = k, .counts = {600}});
  for (const Index head_dim : {200, 700, 3000})
    check_whole<T, T, B>({.queries = 70, .head_dim = head_dim, .k = 3, .counts = {90}});
  check_whole<T, T, B>({.queries = 0, .head_dim = 3, .k = 3, .counts = {90}});
}

TEMPLATE_LIST_TEST_CASE("nearest: the tiles meet numbers that are none as the composition does", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const T odd : {infty::math::not_a_number<T>, infty::math::infinity<T>,
                      -infty::math::infinity<T>, std::numeric_limits<T>::denorm_min()})
    for (const Index k : {1, 4, 50}) {
      const NearestCase<T, B> c{.queries = 6,
                                .heads = 2,
                                .key_heads = 2,
                                .head_dim = 3,
                                .k = k,
                                .block = 16,
                                .counts = {40, 3},
                                .whole = true,
                                .odd = odd};
      CAPTURE(odd, k);
      const auto tiled = found_by<typename B::FusedNearest>(c);
      const auto composed = found_by<infty::ComposedNearest<B>>(c);
      CHECK(tiled.second == composed.second);
    }
}

#if !defined(INFTY_TEST_CUDA)
TEST_CASE("nearest: the tiles find the same in every order of their items") {
  for (const Index queries : {1, 70}) {
    CHECK(infty::tests::same_in_all_orders([&]<class B>() {
      const NearestCase<float, B> c{.queries = queries,
                                    .heads = 2,
                                    .key_heads = 2,
                                    .head_dim = 9,
                                    .k = 7,
                                    .block = 50,
                                    .counts = {5000, 229}};
      return found_by<typename B::FusedNearest, float>(c);
    }));
  }
}

TEST_CASE("nearest: what goes by tiles") {
  const infty::NearestRow<float> row{nullptr, nullptr, 0, 262144, nullptr, nullptr};
  const auto fits = [&](Index head_dim, Index k) {
    return infty::detail::TiledNearest<infty::Cpp>::fits({512, 8, 8, head_dim, 512, k}, &row, 1);
  };
  CHECK(fits(64, 32));
  CHECK(fits(128, 128));
  CHECK(fits(256, 32));
  CHECK_FALSE(fits(64, 10000));
  CHECK_FALSE(fits(10000, 1));
}
#endif
