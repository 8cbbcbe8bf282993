// SPDX-License-Identifier: MIT
#include <cstddef>
#include <type_traits>

#include <infty/eigen/fused_nearest.hpp>
#include <infty/memory/ops/nearest.hpp>

#include "support/catch.hpp"
#include "support/nearest_case.hpp"
#include "support/threads.hpp"

using infty::Index;
using infty::tests::found_by;
using infty::tests::NearestCase;

namespace fused_nearest_tests {

using Kernel = infty::EigenBackend::FusedNearest;
using Composed = infty::ComposedNearest<infty::EigenBackend>;
static_assert(std::is_same_v<infty::detail::chosen_t<Composed>, Kernel>);

TEMPLATE_TEST_CASE("nearest: the kernel finds what the composition finds, ties and all", "", float,
                   double) {
  // Sums of few whole numbers are exact, however they are added up, and many are equal.
  for (const Index queries : {1, 4, 5, 70})
    for (const Index head_dim : {1, 16})
      for (const Index heads : {1, 3})
        for (const bool shared : {false, true})
          for (const Index k : {1, 7, 90}) {
            CAPTURE(queries, head_dim, heads, shared, k);
            const NearestCase<TestType> c{.queries = queries,
                                          .heads = heads,
                                          .key_heads = shared ? 1 : heads,
                                          .head_dim = head_dim,
                                          .k = k,
                                          .block = 100,
                                          .counts = {0, 5, 350},
                                          .whole = true};
            CHECK(found_by<Kernel>(c) == found_by<Composed>(c));
          }
}

TEST_CASE("nearest: the kernel divides the keys among threads and finds the same") {
  for (const Index queries : {1, 6}) {
    const NearestCase<float> c{.queries = queries,
                               .heads = 2,
                               .key_heads = 1,
                               .head_dim = 4,
                               .k = 20,
                               .block = 512,
                               .counts = {13001, 9},
                               .whole = true};
    const auto run = [&] { return found_by<Kernel>(c); };
    const auto alone = infty::tests::with_threads(1, run);
    CHECK(alone == infty::tests::with_threads(3, run));
    CHECK(alone == found_by<Composed>(c));
  }
}

TEST_CASE("nearest: numbers that are none are met as the composition meets them") {
  NearestCase<float> c{.queries = 6,
                       .heads = 1,
                       .key_heads = 1,
                       .head_dim = 2,
                       .k = 4,
                       .block = 64,
                       .counts = {300},
                       .whole = true};
  const float infinity = infty::math::infinity<float>;
  for (const Index queries : {2, 6}) {
    c.queries = queries;
    for (const float odd : {infinity, -infinity, infty::math::not_a_number<float>}) {
      c.odd = odd;  // in every seventh key
      CAPTURE(queries, odd);
      CHECK(found_by<Kernel>(c).second == found_by<Composed>(c).second);
    }
  }
}

TEMPLATE_TEST_CASE("nearest: the kernel at the edges of its sizes", "", float, double) {
  // One key; as many as are wanted, and one less; widths that fill no vector, and more than one.
  for (const Index queries : {0, 1, 5})
    for (const Index head_dim : {3, 17, 50})
      for (const infty::RowCounts& counts : {infty::RowCounts{1}, {33}, {32, 0, 1}, {513}})
        for (const Index k : {1, 32, 33}) {
          CAPTURE(queries, head_dim, k, counts[0]);
          const NearestCase<TestType> c{.queries = queries,
                                        .heads = 2,
                                        .key_heads = 2,
                                        .head_dim = head_dim,
                                        .k = k,
                                        .block = 64,
                                        .counts = counts,
                                        .whole = true};
          CHECK(found_by<Kernel>(c) == found_by<Composed>(c));
        }
}

TEST_CASE("nearest: pieces that hear of each other's scores lose none that is as good") {
  // Thousands of equal scores, in pieces that begin with a bar set by others.
  for (const Index queries : {1, 3, 5})
    for (const float odd : {0.0f, -infty::math::infinity<float>, infty::math::infinity<float>,
                            infty::math::not_a_number<float>}) {
      CAPTURE(queries, odd);
      const NearestCase<float> c{.queries = queries,
                                 .heads = 1,
                                 .key_heads = 1,
                                 .head_dim = 1,
                                 .k = 300,
                                 .block = 512,
                                 .counts = {queries == 5 ? 40000 : 20000},
                                 .whole = true,
                                 .odd = odd};
      const auto run = [&] { return found_by<Kernel>(c).second; };
      const auto alone = infty::tests::with_threads(1, run);
      CHECK(alone == found_by<Composed>(c).second);
      CHECK(alone == infty::tests::with_threads(3, run));
    }
}

TEST_CASE("nearest: a store of nothing but odd scores") {
  // Every score is minus infinity, or none: there is no bar, and the oldest come first.
  for (const float odd : {-infty::math::infinity<float>, infty::math::not_a_number<float>})
    for (const Index queries : {1, 6}) {
      CAPTURE(queries, odd);
      infty::KeyValueStore<float> store(1, 1, 1, 512);
      const Index n = 9000;
      store.append({infty::Tensor<float>::full({1, n, 2}, odd), {n}}, n);
      const auto q = infty::Tensor<float>::full({1, queries, 1}, 1.0f);
      const auto found = infty::nearest(q, store.latest(n), 1, 3).indices.to_vector();
      for (Index i = 0; i < 3 * queries; ++i) CHECK(found[static_cast<std::size_t>(i)] == i % 3);
    }
}

}  // namespace fused_nearest_tests
