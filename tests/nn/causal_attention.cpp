// SPDX-License-Identifier: MIT
#include <infty/autograd/shape.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/layer_norm.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("CausalAttention: each vector sees those up to itself, normed", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::CausalAttention<T, B> attention({}, {.model_dim = 4, .heads = 2, .head_dim = 3},
                                               infty::Random(1));
  infty::LayerNorm<T, B> layer_norm(4);
  infty::Random random(infty::tests::seed);
  fill_uniform(layer_norm.bias.value(), -1, 1, random);
  const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, 5, 4}, random));
  infty::NoState none;
  infty::Pass<T, B> pass{.before = 1, .behind = 2};
  const auto attended = attention.attend(none, x, infty::InputNorm<T, B>(layer_norm), pass);
  const auto normed = layer_norm.forward(x);
  CHECK(attended.queries.value().to_vector() == attention.queries(normed).value().to_vector());
  CHECK(attended.context.value().to_vector() == attention.forward(normed).value().to_vector());
  for (Index end = 1; end < 5; ++end) {
    const auto prefix = attention.forward(narrow(normed, 0, end));
    CHECK(infty::tests::error(narrow(attended.context, 0, end).value().to_vector(),
                              prefix.value().to_vector()) < infty::tests::tolerance<T>);
  }
  // The words, and no memory tokens, leave as they came.
  CHECK(attended.leaving.vectors.to_vector() == narrow(x, 1, 3).value().to_vector());
  CHECK(attended.leaving.length == infty::RowCounts{2, 2});

  pass.answer = false;
  const auto silent = attention.attend(none, x, infty::InputNorm<T, B>(), pass);
  CHECK(silent.context.size() == 0);
  CHECK(silent.leaving.vectors.to_vector() == attended.leaving.vectors.to_vector());

  // Memory tokens leave as well where they are held, and may see each other both ways.
  pass.tokens = {.both_ways = true, .held = true};
  const auto all = attention.attend(none, x, infty::InputNorm<T, B>(), pass);
  CHECK(all.leaving.vectors.to_vector() == x.value().to_vector());
  CHECK(all.leaving.length == infty::RowCounts{5, 5});
  pass.answer = true;
  pass.before = 2;
  const auto y = attention.attend(none, x, infty::InputNorm<T, B>(), pass).context;
  const auto turned = concat(narrow(x, 1, 2), narrow(x, 0, 1));
  CHECK(infty::tests::error(narrow(y, 0, 1).value().to_vector(),
                            narrow(attention.forward(turned), 1, 2).value().to_vector()) <
        infty::tests::tolerance<T>);
  CHECK(infty::tests::error(narrow(y, 2, 3).value().to_vector(),
                            narrow(attention.forward(x), 2, 3).value().to_vector()) <
        infty::tests::tolerance<T>);
}
