// SPDX-License-Identifier: MIT
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/layer_norm.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::CausalAttention;
using infty::Index;
using infty::Random;
using infty::Variable;

static_assert(infty::Attention<CausalAttention<float>>);
static_assert(!infty::remembers<CausalAttention<float>>);

namespace {

constexpr infty::AttentionSizes six{.model_dim = 6, .heads = 2, .head_dim = 4};

}  // namespace

TEMPLATE_LIST_TEST_CASE("CausalAttention: a place sees those up to itself and no other", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const CausalAttention<T, B> attention({}, six, Random(1));
  Random random(infty::tests::seed);
  const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, 7, 6}, random));
  const auto whole = attention.forward(x);
  for (const Index length : {1, 3, 6})
    CHECK(infty::tests::error(attention.forward(narrow(x, 0, length)).value().to_vector(),
                              narrow(whole, 0, length).value().to_vector()) <
          infty::tests::tolerance<T>);
  // The first place sees itself alone: out(value(x)).
  const auto first = narrow(x, 0, 1);
  CHECK(infty::tests::error(
            narrow(whole, 0, 1).value().to_vector(),
            attention.maps.out.forward(attention.maps.value.forward(first)).value().to_vector()) <
        infty::tests::tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("CausalAttention: a memory beside it gets words and queries", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const CausalAttention<T, B> attention({.bias = false}, six, Random(1));
  CHECK(attention.maps.query.bias.size() == 0);
  const infty::LayerNorm<T, B> norm(6);
  const infty::InputNorm<T, B> in_front(norm);
  Random random(infty::tests::seed);
  const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, 7, 6}, random));
  infty::Pass<T, B> pass{.before = 2, .behind = 1};
  infty::NoState none;
  const auto attended = attention.attend(none, x, in_front, pass);
  CHECK(attended.context.value().to_vector() ==
        attention.forward(norm.forward(x)).value().to_vector());
  CHECK(attended.queries.value().to_vector() ==
        attention.queries(norm.forward(x)).value().to_vector());
  // Words as they were, without the memory tokens around them.
  CHECK(attended.leaving.vectors.to_vector() == narrow(x, 2, 6).value().to_vector());
  CHECK(attended.leaving.length == infty::RowCounts{4, 4});
  pass.answer = false;
  const auto unanswered = attention.attend(none, x, in_front, pass);
  CHECK(unanswered.context.size() == 0);
  CHECK(unanswered.leaving.vectors.to_vector() == attended.leaving.vectors.to_vector());
}
