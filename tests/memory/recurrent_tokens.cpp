// SPDX-License-Identifier: MIT
// Around whole models, with gradients through segments, in model/language_model.cpp.

#include <infty/core/state.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/nn/causal_attention.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("RecurrentTokens: what is written behind a segment is in front of the next",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  constexpr Index m = 2, d = 6;
  const infty::CausalAttention<T, B> inner({}, {.model_dim = d, .heads = 2, .head_dim = 3},
                                           Random(1));
  const infty::RecurrentTokens<infty::CausalAttention<T, B>> tokens(inner, m, d, Random(2));
  Random random(infty::tests::seed);
  auto state = tokens.make_state(2);
  CHECK(infty::bytes_of(state) == 2 * m * d * sizeof(T));

  Tensor<T, B> both(Shape{2, m, d});
  for (Index row = 0; row < 2; ++row)
    both.slice(row, row + 1).copy_from(tokens.initial.weight.value().reshape(Shape{1, m, d}));
  const V initial(both);
  V written(Tensor<T, B>::zeros({2, m, d}));
  for (const Index length : {4, 1, 3}) {
    const V x(infty::tests::uniform_tensor<T, B>({2, length, d}, random));
    const V all = inner.forward(concat(concat(written + initial, x), initial));
    written = narrow(all, m + length, 2 * m + length);
    infty::Pass<T, B> pass;
    CHECK(tokens.forward(state, x, pass).value().to_vector() ==
          narrow(all, m, m + length).value().to_vector());
    CHECK(state.tokens.value().to_vector() == written.value().to_vector());
    CHECK(pass.before == 0);
    CHECK(pass.behind == 0);
  }
  // Without an answer the tokens are written all the same.
  auto observed = state, answered = state;
  const V x(infty::tests::uniform_tensor<T, B>({2, 3, d}, random));
  infty::Pass<T, B> pass, quiet{.answer = false};
  tokens.forward(answered, x, pass);
  CHECK(tokens.forward(observed, x, quiet).size() == 0);
  CHECK_FALSE(quiet.answer);
  CHECK(observed.tokens.value().to_vector() == answered.tokens.value().to_vector());
  // A state of other tokens is refused and stays as it was.
  auto foreign = state;
  foreign.tokens = V(Tensor<T, B>::zeros({2, m + 1, d}));
  CHECK_THROWS_AS(tokens.forward(foreign, x, pass), infty::ShapeError);
  CHECK(foreign.tokens.dim(1) == m + 1);
  CHECK_THROWS_AS(tokens.make_state(0), infty::ValueError);
}
