// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include <infty/core/pool.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/nn/plain_attention.hpp>

#include "support/catch.hpp"
#include "support/plain_attention_case.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::AttentionSize;
using infty::EigenBackend;
using infty::Index;
using infty::tests::PlainAttentionCase;
using FusedPlain = EigenBackend::FusedPlainAttention;
using ComposedPlain = infty::ComposedPlainAttention<EigenBackend>;

TEMPLATE_TEST_CASE("FusedPlainAttention: the composition's values and gradients", "", float,
                   double) {
  static_assert(std::is_same_v<infty::detail::chosen_t<infty::ComposedPlainAttention<EigenBackend>>,
                               FusedPlain>);
  // Scores to +-1e4, of which the last digit alone is known, and averages.
  for (const double scale : {1., 100., 1e-4})
    for (const AttentionSize& s : infty::tests::plain_attention_sizes())
      for (const bool causal : {false, true}) {
        if (causal && s.keys < s.queries) continue;
        CAPTURE(scale, s.batch, s.queries, s.keys, s.heads, s.head_dim, causal);
        const PlainAttentionCase<TestType, EigenBackend> c(s, causal, true, scale);
        const auto fused = c.template run<FusedPlain>(), composed = c.template run<ComposedPlain>();
        for (std::size_t i = 0; i < 4; ++i)
          CHECK(infty::tests::error(fused[i], composed[i]) <
                (scale > 1 ? 1e3 : 1) * infty::tests::tolerance<TestType>);
      }
}

TEST_CASE("FusedPlainAttention: NaN spoils the queries that see it alone") {
  for (const Index L : {3, 70}) {
    PlainAttentionCase<float, EigenBackend> c({1, L, L, 1, 4}, true, false);
    c.q.data()[4] = std::numeric_limits<float>::quiet_NaN();  // of query 1
    const auto y = c.run<FusedPlain>()[0];
    for (Index i = 0; i < 4 * L; ++i)
      CHECK(std::isnan(y[static_cast<std::size_t>(i)]) == (i / 4 == 1));
  }
}

TEST_CASE("FusedPlainAttention: the same bits with any number of threads") {
  const PlainAttentionCase<float, EigenBackend> c({3, 130, 300, 2, 10}, true, true);
  const auto run = [&] { return c.run<FusedPlain>(); };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(3, run));
}

TEST_CASE("FusedPlainAttention: memory does not grow with the number of scores") {
  const auto peak = [](Index length) {
    const PlainAttentionCase<float, EigenBackend> c({1, length, 2 * length, 2, 8}, true, false);
    auto& pool = infty::HostPool::instance();
    pool.reset_peak();
    const std::size_t before = pool.statistics().bytes_in_use;
    infty::tests::with_threads(1, [&] { c.run<FusedPlain>(); });
    return pool.statistics().peak_bytes_in_use - before;
  };
  CHECK(peak(1024) < peak(256) * 41 / 10);
}
