// SPDX-License-Identifier: MIT
#include <infty/autograd/shape.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/memory/short_term_memory.hpp>

#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Pass;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;

TEMPLATE_LIST_TEST_CASE("RecurrentTokens: what is written behind is read in front", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  using Attention = infty::ShortTermMemory<T, B>;
  constexpr Index m = 2, d = 4;
  const Attention attention({.capacity = 3}, {.model_dim = d, .heads = 2, .head_dim = 3},
                            infty::Random(1));
  const infty::RecurrentTokens<Attention> tokens(attention, m, d, infty::Random(2));
  auto state = tokens.make_state(2), silent = state;
  auto inner = attention.make_state(2);
  const V initial = reshape(tokens.initial.weight, {1, m, d});
  const V write = V(Tensor<T, B>::zeros({2, m, d})) + initial;
  V written(Tensor<T, B>::zeros({2, m, d}));
  infty::Random random(infty::tests::seed);
  for (const Index length : {3, 1, 5}) {
    CAPTURE(length);
    const V x(infty::tests::uniform_tensor<T, B>({2, length, d}, random));
    Pass<T, B> pass;
    const auto got = tokens.forward(state, x, pass);
    CHECK(pass.before == 0);
    CHECK(pass.behind == 0);
    // By hand: the layer inside is told which vectors are none of the text.
    Pass<T, B> told{.before = m, .behind = m};
    const V y = attention.forward(inner, concat(concat(written + write, x), write), {}, told);
    written = narrow(y, m + length, m + length + m);
    CHECK(
        infty::tests::error(got.value().to_vector(), narrow(y, m, m + length).value().to_vector()) <
        infty::tests::tolerance<T>);
    CHECK(infty::tests::error(state.tokens.value().to_vector(), written.value().to_vector()) <
          infty::tests::tolerance<T>);
    CHECK(numbers_of(state.inner) == numbers_of(inner));

    Pass<T, B> unanswered{.answer = false};
    CHECK(tokens.forward(silent, x, unanswered).size() == 0);
    CHECK_FALSE(unanswered.answer);
    CHECK(numbers_of(silent) == numbers_of(state));
  }
  const V narrower(Tensor<T, B>::zeros({2, 3, d - 1}));
  Pass<T, B> pass;
  const auto before = numbers_of(state);
  CHECK_THROWS_AS(tokens.forward(state, narrower, pass), infty::ShapeError);
  CHECK(numbers_of(state) == before);
}
