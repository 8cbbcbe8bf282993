// SPDX-License-Identifier: MIT
#include <algorithm>

#include <infty/autograd/shape.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/self_attention.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

TEMPLATE_LIST_TEST_CASE("SelfAttention: every vector sees every other", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::SelfAttention<T, B> attention({}, {.model_dim = 4, .heads = 2, .head_dim = 3},
                                             infty::Random(1));
  infty::CausalAttention<T, B> causal;
  causal.maps = attention.maps;
  infty::Random random(infty::tests::seed);
  const infty::Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, 5, 4}, random));
  const auto y = attention.forward(x);
  // The last sees all where attention is causal, too; so does each, moved to the end.
  for (infty::Index i = 0; i < 5; ++i) {
    const auto last = concat(concat(narrow(x, 0, i), narrow(x, i + 1, 5)), narrow(x, i, i + 1));
    CHECK(infty::tests::error(narrow(y, i, i + 1).value().to_vector(),
                              narrow(causal.forward(last), 4, 5).value().to_vector()) <
          infty::tests::tolerance<T>);
  }
  // The first alone answer where no others are wanted, and have seen all the same.
  for (const infty::Index first : {1, 3, 5, 9}) {
    const auto some = attention.forward(x, infty::Pass<T, B>{.first = first});
    REQUIRE(some.dim(1) == std::min<infty::Index>(first, 5));
    CHECK(infty::tests::error(some.value().to_vector(),
                              narrow(y, 0, some.dim(1)).value().to_vector()) <
          infty::tests::tolerance<T>);
  }
}
