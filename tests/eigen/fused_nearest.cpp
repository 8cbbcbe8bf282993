// SPDX-License-Identifier: MIT
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

}  // namespace fused_nearest_tests
