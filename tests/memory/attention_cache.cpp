// SPDX-License-Identifier: MIT
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
    CHECK(next(false) == next(true));
    CHECK(next(false) != before);
  }
}
