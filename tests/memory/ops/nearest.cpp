// SPDX-License-Identifier: MIT
#include <algorithm>
#include <vector>

#include <infty/core/bfloat16.hpp>
#include <infty/memory/ops/nearest.hpp>

#include "support/catch.hpp"
#include "support/nearest_case.hpp"
#include "support/types.hpp"

using infty::BFloat16;
using infty::Index;
using infty::nearest;
using infty::Shape;
using infty::Tensor;
using infty::tests::NearestCase;

namespace nearest_tests {

/// What a search finds, by sorting all scores.
template <class T, class B>
std::pair<std::vector<T>, std::vector<Index>> sorted(const NearestCase<T, B>& c, Index k) {
  const auto q = c.q().to_vector(), entries = c.entries().to_vector();
  const Index D = c.head_dim, width = 2 * c.key_heads * D, longest = c.longest();
  std::vector<T> scores;
  std::vector<Index> indices;
  for (Index b = 0; b < c.batch(); ++b) {
    const Index count = std::min(c.counts[static_cast<std::size_t>(b)], longest - c.hidden);
    for (Index i = 0; i < c.queries * c.heads; ++i) {
      const Index head = c.key_heads == 1 ? 0 : i % c.heads;
      std::vector<std::pair<T, Index>> all;
      for (Index j = 0; j < count; ++j) {
        T score = 0;
        for (Index d = 0; d < D; ++d)
          score += q[static_cast<std::size_t>((b * c.queries * c.heads + i) * D + d)] *
                   entries[static_cast<std::size_t>(((b + 1) * longest - count + j) * width +
                                                    head * D + d)];
        all.push_back({-score, j});
      }
      std::sort(all.begin(), all.end());
      for (Index j = 0; j < k; ++j) {
        scores.push_back(j < count ? -all[static_cast<std::size_t>(j)].first
                                   : -infty::math::infinity<T>);
        indices.push_back(j < count ? all[static_cast<std::size_t>(j)].second : -1);
      }
    }
  }
  return {scores, indices};
}

}  // namespace nearest_tests

TEMPLATE_LIST_TEST_CASE("nearest: what sorting all scores finds, the older first of equal ones", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index queries : {1, 6})
    for (const bool shared : {false, true})
      for (const Index k : {1, 5, 40})
        for (const Index hidden : {0, 3}) {
          CAPTURE(queries, shared, k, hidden);
          const NearestCase<T, B> c{.queries = queries,
                                    .heads = 2,
                                    .key_heads = shared ? 1 : 2,
                                    .head_dim = 3,
                                    .k = k,
                                    .block = 8,
                                    .counts = {0, 4, 29},
                                    .whole = true,
                                    .hidden = hidden};
          const auto found = nearest(c.q(), c.stored(), c.heads, k);
          const Index most = std::min<Index>(k, 29 - hidden);
          CHECK(found.indices.shape() == Shape{3, queries, 2, most});
          const auto [scores, indices] = nearest_tests::sorted(c, most);
          CHECK(found.indices.to_vector() == indices);
          CHECK(found.scores.to_vector() == scores);
        }
}

TEMPLATE_LIST_TEST_CASE("nearest: keys kept as bfloat16 are met as the numbers that they are", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index queries : {1, 3, 5, 70})  // alone, and in tiles that are full or not
    for (const Index key_heads : {1, 2})
      for (const Index head_dim : {1, 15, 16, 33}) {
        CAPTURE(queries, key_heads, head_dim);
        const NearestCase<T, B> c{.queries = queries,
                                  .heads = 2,
                                  .key_heads = key_heads,
                                  .head_dim = head_dim,
                                  .k = 7,
                                  .block = 50,
                                  .counts = {0, 4, 229},
                                  .hidden = 3};
        const auto narrow = c.template store<BFloat16>();
        infty::KeyValueStore<T, B> wide(0, key_heads, head_dim, c.block);
        wide.restore(narrow.saved());
        const Index seen = c.longest() - c.hidden;
        const auto found = nearest(c.q(), narrow.latest(seen), c.heads, c.k);
        const auto expected = nearest(c.q(), wide.latest(seen), c.heads, c.k);
        CHECK(found.indices.to_vector() == expected.indices.to_vector());
        CHECK(found.scores.to_vector() == expected.scores.to_vector());
      }
}

TEST_CASE("nearest: what does not fit is refused") {
  const NearestCase<float> c{
      .queries = 2, .heads = 2, .key_heads = 2, .head_dim = 3, .k = 1, .block = 8, .counts = {5}};
  const auto stored = c.stored();
  CHECK_THROWS_AS(nearest(c.q(), stored, 2, 0), infty::ValueError);
  CHECK_THROWS_AS(nearest(c.q(), stored, 3, 1), infty::ShapeError);
  CHECK_THROWS_AS(nearest(c.q(), stored, 0, 1), infty::ShapeError);
  CHECK_THROWS_AS(nearest(Tensor<float>::zeros({1, 2, 5}), stored, 2, 1), infty::ShapeError);
  CHECK_THROWS_AS(nearest(Tensor<float>::zeros({2, 2, 6}), stored, 2, 1), infty::ShapeError);
  CHECK(nearest(Tensor<float>::zeros({1, 0, 6}), stored, 2, 1).indices.shape() ==
        Shape{1, 0, 2, 1});
  const infty::KeyValueStore<float> none(2, 2, 3);
  CHECK(nearest(Tensor<float>::zeros({2, 3, 6}), none.latest(9), 2, 4).scores.shape() ==
        Shape{2, 3, 2, 0});
}
