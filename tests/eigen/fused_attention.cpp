// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <infty/core/pool.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/nn/attention.hpp>

#include "support/attention_case.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::AttentionGradients;
using infty::AttentionSize;
using infty::EigenBackend;
using infty::Index;
using infty::Tensor;
using infty::tests::AttentionCase;
using Fused = EigenBackend::FusedAttention;
using Composed = infty::ComposedAttention<EigenBackend>;

namespace {

// Around the tile of 64 queries and that of 192 keys, and the smallest that there are.
const std::vector<AttentionSize>& attention_sizes() {
  static const std::vector<AttentionSize> all{
      {2, 0, 5, 2, 4},     {1, 1, 1, 1, 1},      {2, 1, 40, 2, 3},   {2, 5, 5, 2, 4},
      {3, 7, 20, 3, 7},    {2, 64, 192, 1, 8},   {2, 65, 193, 2, 5}, {1, 63, 255, 1, 16},
      {1, 200, 200, 2, 6}, {1, 130, 450, 1, 33}, {1, 1, 400, 4, 16}, {1, 9, 12, 1, 500}};
  return all;
}

template <class T>
using Numbers = std::vector<std::vector<T>>;

template <class T>
double worst_error(const Numbers<T>& got, const Numbers<T>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, infty::tests::error(got[i], expected[i]));
  return worst;
}

}  // namespace

TEMPLATE_TEST_CASE("FusedAttention: the composition's values and gradients", "", float, double) {
  static_assert(std::is_same_v<infty::detail::ChosenAttention<EigenBackend>::type, Fused>);
  for (const AttentionSize& s : attention_sizes())
    for (const bool limited : {false, true}) {
      CAPTURE(s.batch, s.queries, s.keys, s.heads, s.head_dim, limited);
      const AttentionCase<TestType, EigenBackend> c(s, limited);
      CHECK(worst_error(c.template run<Fused>(), c.template run<Composed>()) <
            infty::tests::tolerance<TestType>);
    }
}

TEMPLATE_TEST_CASE("FusedAttention: the smallest and the largest scores", "", float, double) {
  const AttentionSize s{2, 70, 300, 1, 16};
  for (const double scale : {100., 1e-4}) {
    CAPTURE(scale);
    const AttentionCase<TestType, EigenBackend> c(s, true, scale);
    // A score of 1e4 is known to its last digit only, and so is the logarithm of the weight.
    CHECK(worst_error(c.template run<Fused>(), c.template run<Composed>()) <
          (scale > 1 ? 1e3 : 1) * infty::tests::tolerance<TestType>);
  }
}

TEST_CASE("FusedAttention: only the gradients that are wanted") {
  const AttentionSize s{2, 70, 280, 2, 6};
  const AttentionCase<double, EigenBackend> c(s, true);
  const auto all = c.run<Fused>();
  Tensor<double> y(c.q.shape()), log_sum({s.batch, s.queries, s.heads});
  Fused::forward(s, c.inputs(), y.data(), log_sum.data());
  for (std::size_t wanted = 0; wanted < 6; ++wanted) {
    auto gradient =
        Tensor<double>::full(std::array{c.q, c.k, c.v, c.r, c.u, c.w}[wanted].shape(), 1);
    AttentionGradients<double> to{};
    *std::array{&to.q, &to.k, &to.v, &to.r, &to.u, &to.w}[wanted] = gradient.data();
    Fused::backward(s, c.inputs(), y.data(), log_sum.data(), c.dy.data(), to);
    CAPTURE(wanted);
    CHECK(gradient.to_vector() == all[wanted + 1]);
  }
}

TEST_CASE("FusedAttention: the same bits with any number of threads") {
  const AttentionCase<float, EigenBackend> c({3, 130, 300, 2, 10}, true);
  Numbers<float> one, many;
  infty::tests::with_threads(1, [&] { one = c.run<Fused>(); });
  infty::tests::with_threads(3, [&] { many = c.run<Fused>(); });
  CHECK(one == many);
}

TEST_CASE("FusedAttention: memory does not grow with the number of scores") {
  const auto peak = [](Index length) {
    const AttentionCase<float, EigenBackend> c({1, length, 2 * length, 2, 8}, false);
    auto& pool = infty::HostPool::instance();
    pool.reset_peak();
    const std::size_t before = pool.statistics().bytes_in_use;
    infty::tests::with_threads(1, [&] { c.run<Fused>(); });
    return pool.statistics().peak_bytes_in_use - before;
  };
  CHECK(peak(2048) < peak(512) * 41 / 10);
}
