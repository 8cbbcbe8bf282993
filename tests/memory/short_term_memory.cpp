// SPDX-License-Identifier: MIT
#include <limits>
#include <vector>

#include <infty/memory/no_memory.hpp>
#include <infty/memory/short_term_memory.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::ShortTermConfig;
using infty::ShortTermMemory;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_tensor;

namespace {

constexpr infty::AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 4};

/// A layer's part of what a memory is given, in which biases and norm are no zeros.
template <class T, class B>
struct Attention {
  infty::RelativeAttention<T, B> attention{sizes.model_dim, sizes.heads, sizes.head_dim, Random(1)};
  infty::LayerNorm<T, B> norm{sizes.model_dim};
  infty::AttentionBiases<T, B> biases{sizes};
  Tensor<T, B> encoding = infty::distance_encoding<T, B>(20, sizes.model_dim);

  Attention() {
    Random random(infty::tests::seed);
    for (auto* x : {&norm.bias, &biases.content, &biases.position})
      fill_uniform(x->value(), -1, 1, random);
  }

  template <class M>
  infty::MemoryReading<T, B> operator()(const M& memory, typename M::State& state,
                                        const Tensor<T, B>& x, bool normed) const {
    const Variable<T, B> in(x);
    return memory.forward(state, {in, attention, normed ? &norm : nullptr, biases, encoding});
  }
};

/// Places [begin, end) of x [batch, L, d].
template <class T, class B>
Tensor<T, B> part(const Tensor<T, B>& x, Index begin, Index end) {
  return narrow(Variable<T, B>(x), begin, end).value();
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("ShortTermMemory: a segment sees what it would see in a longer one", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Attention<T, B> attend;
  const ShortTermMemory<T, B> memory({.capacity = 5}, sizes);
  CHECK(memory.reach() == 5);
  Random random(infty::tests::seed);
  const auto x = uniform_tensor<T, B>({2, 9, 6}, random);
  for (const bool normed : {false, true}) {
    // The last place of a segment of six sees five before it and itself, however it came to that.
    auto whole = memory.make_state(2), pieces = memory.make_state(2);
    attend(memory, whole, part(x, 0, 3), normed);
    const auto at_once = attend(memory, whole, part(x, 3, 9), normed);
    CHECK(at_once.context.shape() == Shape{2, 6, 6});
    CHECK(at_once.queries.shape() == Shape{2, 6, 8});
    CHECK(at_once.density.size() == 0);
    CHECK(at_once.auxiliary.size() == 0);
    Tensor<T, B> last;
    for (Index i = 0; i < 9; ++i) {
      const auto one = attend(memory, pieces, part(x, i, i + 1), normed);
      CHECK(one.leaving.length == infty::RowCounts{i < 5 ? 0 : 1, i < 5 ? 0 : 1});
      last = one.context.value();
    }
    // Place 8 sees 3..8 both times: there by memory and segment, here by memory alone.
    const infty::NoMemory<T, B> none({}, sizes);
    auto nothing = none.make_state(2);
    const auto alone = attend(none, nothing, part(x, 3, 9), normed);
    CHECK(infty::tests::error(part(alone.context.value(), 5, 6).to_vector(), last.to_vector()) <
          infty::tests::tolerance<T>);
    CHECK(pieces.recent.vectors.to_vector() == whole.recent.vectors.to_vector());
    CHECK(pieces.recent.vectors.to_vector() == part(x, 4, 9).to_vector());
  }
}

TEST_CASE("ShortTermMemory: the stride is 1 unless a long-term memory takes in what leaves") {
  CHECK(ShortTermConfig{.capacity = 12}.resolved(true).stride == 12);
  CHECK(ShortTermConfig{.capacity = 12, .stride = 5}.resolved(true).stride == 5);
  CHECK(ShortTermConfig{.capacity = 12, .stride = 5}.resolved(false).stride == 1);
  CHECK(ShortTermConfig{.capacity = 0}.resolved(true).stride == 1);
  CHECK(ShortTermMemory<float>({.capacity = 4, .stride = 3}, sizes).reach() == 6);
  CHECK(infty::NoMemory<float>({}, sizes).reach() == 0);
}

TEST_CASE("ShortTermMemory: what cannot be is refused") {
  CHECK_THROWS_WITH(ShortTermMemory<float>({.capacity = -1}, sizes),
                    "[ShortTermConfig] capacity is -1: it must be at least 0");
  CHECK_THROWS_WITH(ShortTermMemory<float>({.stride = -1}, sizes),
                    "[ShortTermConfig] stride is -1: it must be at least 0");
  CHECK_THROWS_WITH(ShortTermMemory<float>({}, {.model_dim = 6, .heads = 0, .head_dim = 4}),
                    "[AttentionSizes] model_dim is 6, heads 0, head_dim 4: they must be >= 1");
  for (const infty::Index huge :
       {infty::Index{1} << 62, std::numeric_limits<infty::Index>::max()}) {
    CHECK_THROWS_WITH(ShortTermMemory<float>({.capacity = huge}, sizes),
                      Catch::Contains("[ShortTermConfig] capacity is "));
    CHECK_THROWS_WITH(ShortTermMemory<float>({.stride = huge}, sizes),
                      Catch::Contains("[ShortTermConfig] stride is "));
    CHECK_THROWS_WITH(ShortTermMemory<float>({}, {.model_dim = 6, .heads = huge, .head_dim = 4}),
                      Catch::Contains("[AttentionSizes] heads is "));
  }
  const Attention<float, infty::EigenBackend> attend;
  const ShortTermMemory<float> memory({.capacity = 3}, sizes), other({.capacity = 4}, sizes);
  CHECK_THROWS_AS(memory.make_state(0), infty::ValueError);
  auto state = other.make_state(2);
  CHECK_THROWS_AS(attend(memory, state, Tensor<float>::zeros({2, 3, 6}), false), infty::ShapeError);
}

TEST_CASE("ShortTermMemory: counts its products") {
  // Queries and output, keys and values, positions: 2 rows, 3 queries, 5 keys, d = 6, H D = 8; then
  // three products over 3 + 4 + 5 pairs a row.
  const double maps = 2.0 * (2 * 3 * 16 * 6 + 2 * 5 * 16 * 6 + 5 * 8 * 6);
  const double pairs = 3 * 2.0 * 2 * 8 * (3 + 4 + 5);
  CHECK(ShortTermMemory<float>({.capacity = 2}, sizes).flops(2, 3) == maps + pairs);
}
