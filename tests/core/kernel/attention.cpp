// SPDX-License-Identifier: MIT
#include <type_traits>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/core/pool.hpp>
#include <infty/nn/attention.hpp>

#include "support/attention_case.hpp"
#include "support/catch.hpp"
#include "support/kernel.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"
#if defined(INFTY_TEST_THRUST)
#include "support/item_orders.hpp"
#include "support/roomy.hpp"
#endif

using infty::AttentionSize;
using infty::ComposedAttention;
using infty::Index;
using infty::Random;
using infty::tests::AttentionCase;
using infty::tests::kernel_equals_composition;
using infty::tests::tolerance;
using infty::tests::uniform_tensor;

namespace {

/// Sizes whose last tiles are partly empty, around the CPU's tiles of 64 queries and 256 keys and a
/// GPU's of 64 and 32: no query, one query, no memory, heads of odd width, heads for which a GPU's
/// tiles are smaller or, in double, too wide for any, several of everything, and three tiles of
/// keys and more, whose last one has fewer than there are queries. The last ones are mirrored: one
/// key, keys for each query, and far fewer.
const std::vector<AttentionSize>& attention_sizes() {
  static const std::vector<AttentionSize> all{
      {2, 0, 5, 2, 4},           {1, 1, 1, 1, 1},           {2, 1, 40, 2, 3},
      {2, 5, 5, 2, 4},           {3, 7, 20, 3, 7},          {2, 64, 96, 1, 8},
      {2, 65, 130, 2, 5},        {1, 70, 70, 1, 64},        {1, 40, 60, 2, 130},
      {2, 64, 192, 1, 8},        {1, 20, 33, 1, 250},       {2, 65, 193, 2, 5},
      {1, 63, 255, 1, 16},       {1, 9, 12, 1, 500},        {1, 200, 200, 2, 6},
      {1, 130, 450, 1, 33},      {1, 1, 400, 4, 16},        {2, 100, 560, 2, 6},
      {1, 30, 1100, 1, 5},       {2, 3, 1, 2, 4, true},     {3, 7, 7, 3, 7, true},
      {2, 96, 64, 1, 8, true},   {4, 330, 65, 2, 5, true},  {1, 400, 300, 1, 16, true},
      {2, 40, 20, 2, 130, true}, {1, 20, 12, 1, 250, true}, {1, 12, 9, 1, 500, true},
      {1, 600, 530, 1, 6, true}};
  return all;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("attention: the kernel has the composition's values and gradients", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const AttentionSize& s : attention_sizes())
    for (const bool limited : {false, true}) {
      CAPTURE(s.batch, s.queries, s.keys, s.heads, s.head_dim, s.mirrored, limited);
      const AttentionCase<T, B> c(s, limited);
      kernel_equals_composition<ComposedAttention<B>>(
          [&]<class Kernel>() { return c.template run<Kernel>(); }, tolerance<T>);
      if constexpr (requires { B::FusedAttention::template fits<T>(s); })
        if (s.head_dim < 500 || std::is_same_v<T, float>)
          CHECK(B::FusedAttention::template fits<T>(s));
    }
}

TEMPLATE_LIST_TEST_CASE("attention: the kernel takes the smallest and the largest scores", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Scores to +-1e4: a softmax is all or nothing, and nothing overflows. To +-1e-8: an average.
  for (const double scale : {100., 1e-4}) {
    CAPTURE(scale);
    const AttentionCase<T, B> c({2, 70, 300, 1, 16}, true, scale);
    // A score of 1e4 is known to its last digit only, and so is the logarithm of the weight.
    kernel_equals_composition<ComposedAttention<B>>(
        [&]<class Kernel>() { return c.template run<Kernel>(); },
        (scale > 1 ? 1e3 : 1) * tolerance<T>);
  }
}

TEMPLATE_LIST_TEST_CASE("attention: the kernel adds only the gradients that are wanted", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const AttentionCase<T, B> c({2, 70, 280, 2, 6}, true);
  infty::tests::gradients_come_alone(
      1, 6, [&](unsigned wanted) { return c.template run<typename B::FusedAttention>(wanted); });
}

TEMPLATE_LIST_TEST_CASE("attention: the kernel has the same bits with any number of threads", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const AttentionCase<T, B> c({3, 130, 300, 2, 10}, true);
  const auto run = [&] { return c.template run<typename B::FusedAttention>(); };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(3, run));
}

TEMPLATE_LIST_TEST_CASE("attention: one variable in several places", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const Index L = 37, e = 8;
  const auto x = uniform_tensor<T, B>({2, L, e}, random), r = uniform_tensor<T, B>({L, e}, random);
  const auto bias = uniform_tensor<T, B>({2, e / 2}, random);
  const auto gradients = [&](bool same) {
    std::vector<infty::Variable<T, B>> at;
    for (int i = 0; i < 3; ++i)
      at.push_back(same && i > 0 ? at[0] : infty::Variable<T, B>(x.clone(), true));
    const infty::Variable<T, B> u(bias.clone(), true), distances(r.clone(), true);
    const infty::Variable<T, B> w = same ? u : infty::Variable<T, B>(bias.clone(), true);
    infty::Tape tape;
    tape.backward(infty::sum(infty::relative_attention(at[0], at[1], at[2], distances, u, w)));
    std::vector<T> dx = at[0].grad().to_vector(), du = u.grad().to_vector();
    if (!same) {
      for (const std::size_t i : {1u, 2u}) {
        const auto more = at[i].grad().to_vector();
        for (std::size_t j = 0; j < dx.size(); ++j) dx[j] += more[j];
      }
      const auto more = w.grad().to_vector();
      for (std::size_t j = 0; j < du.size(); ++j) du[j] += more[j];
    }
    dx.insert(dx.end(), du.begin(), du.end());
    return dx;
  };
  CHECK(infty::tests::error(gradients(true), gradients(false)) < infty::tests::tolerance<T>);
}

TEST_CASE("attention: memory does not grow with the number of scores") {
  using B = infty::EigenBackend;
  const auto peak = [](Index length, bool mirrored) {
    const AttentionSize s{
        1, mirrored ? 2 * length : length, mirrored ? length : 2 * length, 2, 8, mirrored};
    const AttentionCase<float, B> c(s, false);
    auto& pool = infty::HostPool::instance();
    pool.reset_peak();
    const std::size_t before = pool.statistics().bytes_in_use;
    infty::tests::with_threads(1, [&] { c.run<B::FusedAttention>(); });
    return pool.statistics().peak_bytes_in_use - before;
  };
  for (const bool mirrored : {false, true})
    CHECK(peak(1024, mirrored) < peak(256, mirrored) * 41 / 10);
}

#if defined(INFTY_TEST_THRUST)

TEMPLATE_TEST_CASE("attention by tiles: as large as shared memory has room for", "", float,
                   double) {
  using Small = infty::ThrustBackend<infty::Cpp>;
  using B = infty::ThrustBackend<infty::tests::Roomy>;
  // Of 64 queries for heads to 172, in double to 76: with less memory to 68 and 28.
  for (const AttentionSize& s : {AttentionSize{1, 70, 130, 2, 80},
                                 {2, 65, 100, 1, 128},
                                 {1, 130, 200, 1, 168},
                                 {1, 40, 70, 1, 250},
                                 {1, 70, 40, 1, 96, true}}) {
    CAPTURE(s.batch, s.queries, s.keys, s.heads, s.head_dim, s.mirrored);
    const AttentionCase<TestType, B> c(s, true);
    kernel_equals_composition<ComposedAttention<B>>(
        [&]<class Kernel>() { return c.template run<Kernel>(); }, tolerance<TestType>);
    const AttentionCase<TestType, Small> small(s, true);
    CHECK(c.template run<typename B::FusedAttention>() !=
          small.template run<typename Small::FusedAttention>());
  }
  const AttentionSize wide{1, 9, 12, 1, 500};
  CHECK(B::FusedAttention::fits<TestType>(wide));
  CHECK(Small::FusedAttention::fits<TestType>(wide) == std::is_same_v<TestType, float>);
}

namespace {

struct Counting;
std::size_t allocated = 0;

}  // namespace

template <>
struct infty::detail::ThrustSystem<Counting> : ThrustSystem<Cpp> {
  static void* allocate(std::size_t bytes) {
    allocated += bytes;
    return ThrustSystem<Cpp>::allocate(bytes);
  }
};

TEST_CASE("attention by tiles: memory does not grow with the number of scores") {
  using B = infty::ThrustBackend<Counting>;
  const auto temporaries = [](Index length) {
    const AttentionSize s{1, length, 2 * length, 2, 8};
    const AttentionCase<float, B> c(s, false);
    const std::size_t before = allocated;
    c.run<B::FusedAttention>();
    return allocated - before;
  };
  CHECK(temporaries(512) < temporaries(128) * 41 / 10);
}

TEST_CASE("attention by tiles: the kernels have no race") {
  for (const AttentionSize& s : attention_sizes())
    CHECK(infty::tests::same_in_all_orders([&]<class B>() {
      return AttentionCase<float, B>(s, true).template run<typename B::FusedAttention>();
    }));
}
#endif
