// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/attention.hpp>

#include "support/attention_case.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"
#if !defined(INFTY_TEST_CUDA)
#include "support/item_orders.hpp"
#endif

using infty::AttentionGradients;
using infty::AttentionSize;
using infty::ComposedAttention;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::AttentionCase;
using infty::tests::uniform_tensor;

namespace {

/// Sizes whose last tiles are partly empty: no query, one query, no memory, heads of odd width,
/// heads for which tiles are smaller or, in double, too wide for any, and several of everything.
const std::vector<AttentionSize>& sizes() {
  static const std::vector<AttentionSize> all{
      {2, 0, 5, 2, 4},     {1, 1, 1, 1, 1},     {2, 1, 40, 2, 3},   {2, 5, 5, 2, 4},
      {3, 7, 20, 3, 7},    {2, 64, 96, 1, 8},   {2, 65, 130, 2, 5}, {1, 70, 70, 1, 64},
      {1, 40, 60, 2, 130}, {1, 20, 33, 1, 250}, {1, 9, 12, 1, 500}};
  return all;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("attention by tiles: the composition's values and gradients", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Kernel = typename B::FusedAttention;
  static_assert(std::is_same_v<typename infty::detail::ChosenAttention<B>::type, Kernel>);
  for (const AttentionSize& s : sizes())
    for (const bool limited : {false, true}) {
      CAPTURE(s.batch, s.queries, s.keys, s.heads, s.head_dim, limited);
      CHECK(Kernel::template fits<T>(s) == (s.head_dim < 500 || std::is_same_v<T, float>));
      const AttentionCase<T, B> c(s, limited);
      const auto tiled = c.template run<Kernel>();
      const auto composed = c.template run<ComposedAttention<B>>();
      for (std::size_t i = 0; i < tiled.size(); ++i) {
        CAPTURE(i);
        CHECK(infty::tests::error(tiled[i], composed[i]) < infty::tests::tolerance<T>);
      }
    }
}

TEMPLATE_LIST_TEST_CASE("attention by tiles: the smallest and the largest scores", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Scores to +-1e4: a softmax is all or nothing, and nothing overflows. To +-1e-8: an average.
  const AttentionSize s{2, 70, 100, 1, 16};
  for (const double scale : {100., 1e-4}) {
    CAPTURE(scale);
    const AttentionCase<T, B> c(s, true, scale);
    const auto tiled = c.template run<typename B::FusedAttention>();
    const auto composed = c.template run<ComposedAttention<B>>();
    for (std::size_t i = 0; i < tiled.size(); ++i) {
      CAPTURE(i);
      // A score of 1e4 is known to its last digit only, and so is the logarithm of the weight.
      CHECK(infty::tests::error(tiled[i], composed[i]) <
            (scale > 1 ? 1e3 : 1) * infty::tests::tolerance<T>);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("attention by tiles: only the gradients that are wanted", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Kernel = typename B::FusedAttention;
  const AttentionSize s{2, 20, 50, 2, 6};
  const AttentionCase<T, B> c(s, true);
  const auto all = c.template run<Kernel>();
  Tensor<T, B> y(c.q.shape()), log_sum(Shape{s.batch, s.queries, s.heads});
  Kernel::forward(s, c.inputs(), y.data(), log_sum.data());
  for (std::size_t wanted = 0; wanted < 6; ++wanted) {
    auto gradient =
        Tensor<T, B>::full(std::array{c.q, c.k, c.v, c.r, c.u, c.w}[wanted].shape(), T(1));
    AttentionGradients<T> to{};
    *std::array{&to.q, &to.k, &to.v, &to.r, &to.u, &to.w}[wanted] = gradient.data();
    Kernel::backward(s, c.inputs(), y.data(), log_sum.data(), c.dy.data(), to);
    CHECK(gradient.to_vector() == all[wanted + 1]);
  }
}

TEMPLATE_LIST_TEST_CASE("attention by tiles: one variable in several places", "",
                        infty::tests::Types) {
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

#if !defined(INFTY_TEST_CUDA)

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
  for (const AttentionSize& s : sizes())
    CHECK(infty::tests::same_in_all_orders([&]<class B>() {
      return AttentionCase<float, B>(s, true).template run<typename B::FusedAttention>();
    }));
}
#endif
