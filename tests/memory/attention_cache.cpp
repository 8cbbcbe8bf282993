// SPDX-License-Identifier: MIT
#include <utility>
#include <vector>

#include <infty/memory/attention_cache.hpp>
#include <infty/memory/short_term_memory.hpp>

#include "support/around.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Tensor;
using infty::Variable;

namespace attention_cache_tests {

/// Keys that were held are products of a few tokens, those that are made anew of all at once.
template <class T, class B>
void check_same(const std::vector<T>& held, const std::vector<T>& anew) {
  if constexpr (infty::tests::same_bits_in_any_batch<B>)
    REQUIRE(held == anew);
  else
    REQUIRE(infty::tests::error(held, anew) < infty::tests::tolerance<T>);
}

}  // namespace attention_cache_tests

TEMPLATE_LIST_TEST_CASE(
    "attention_cache: keys are made anew when what they were made of is written", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  constexpr infty::AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 4};
  infty::tests::Around<T, B> attend(6);
  auto memory = attend.drawn(infty::ShortTermMemory<T, B>({.capacity = 5}, sizes, Random(1)));
  auto& attention = memory.attention;
  Random random(infty::tests::seed);
  auto state = memory.make_state(2);
  const auto forward = [&](auto& from) {
    const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, 1, 6}, random));
    return attend(memory, from, x, true).context.value().to_vector();
  };
  for (int i = 0; i < 4; ++i) forward(state);
  const auto next = [&](bool forget) {
    auto copy = state;
    if (forget) copy.cache = {};
    random.seek(1000);
    return forward(copy);
  };
  // Handles of what keys, values and positions are computed from, none of them a variable's.
  Tensor<T, B> handles[] = {attention.key.weight.value(),      attention.value.weight.value(),
                            attention.position.weight.value(), attend.layer_norm.weight.value(),
                            attend.layer_norm.bias.value(),    state.recent.vectors,
                            attention.encoding(5 + 1),         state.recent.vectors.slice(1, 2)};
  for (Index i = 0; auto& handle : handles) {
    CAPTURE(i++);
    const auto before = next(false);
    CHECK(next(false) == before);
    fill_uniform(handle, -1, 1, random);
    attention_cache_tests::check_same<T, B>(next(false), next(true));
    CHECK(next(false) != before);
  }
}

namespace attention_cache_tests {

/// A state, and the same without anything that is kept to be fast.
template <class State>
struct Pair {
  State fast, plain;
};

}  // namespace attention_cache_tests

TEMPLATE_LIST_TEST_CASE(
    "attention_cache: what stays in place is what would be copied, in every branch of a past", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  constexpr infty::AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 4};
  const infty::tests::Around<T, B> attend(6);
  Random random(infty::tests::seed);
  for (const Index batch : {1, 3})
    for (const Index stride : {1, 7}) {
      const auto memory = attend.drawn(
          infty::ShortTermMemory<T, B>({.capacity = 21, .stride = stride}, sizes, Random(1)));
      using Pair = attention_cache_tests::Pair<decltype(memory.make_state(1))>;
      std::vector<Pair> branches(1, {memory.make_state(batch), memory.make_state(batch)});
      int stayed = 0;
      for (int step = 0; step < 160; ++step) {
        CAPTURE(batch, stride, step);
        const auto chosen = static_cast<std::size_t>(random.below(std::ssize(branches)));
        if (step % 40 == 30) branches.push_back(Pair(branches[chosen]));
        auto& [fast, plain] = branches[chosen];
        if (step % 40 == 35) {
          reset_row(fast, batch - 1);
          reset_row(plain, batch - 1);
        }
        const Index tokens = step % 16 == 15 ? 1 : 0,
                    length = step % 20 == 10 ? 30 : 1 + random.below(3) + 2 * tokens;
        const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({batch, length, 6}, random));
        const T* const before = std::as_const(fast).recent.vectors.data();
        const auto answer = [&](auto& state) {
          infty::Pass<T, B> pass{.before = tokens, .behind = tokens};
          return attend(memory, state, x, true, pass);
        };
        const auto one = answer(fast), other = answer(plain);
        plain.cache = {};
        plain.room = {};
        stayed += std::as_const(fast).recent.vectors.data() == before + 6 * (length - 2 * tokens);
        attention_cache_tests::check_same<T, B>(one.context.value().to_vector(),
                                                other.context.value().to_vector());
        REQUIRE(one.leaving.length == other.leaving.length);
        REQUIRE(one.leaving.vectors.to_vector() == other.leaving.vectors.to_vector());
        for (const Pair& branch : branches) {
          REQUIRE(branch.fast.recent.length == branch.plain.recent.length);
          REQUIRE(branch.fast.recent.vectors.to_vector() ==
                  branch.plain.recent.vectors.to_vector());
        }
      }
      CHECK((batch == 1 ? stayed > 80 : stayed == 0));
    }
}
