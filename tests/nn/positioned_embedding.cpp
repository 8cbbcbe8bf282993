// SPDX-License-Identifier: MIT
#include <infty/nn/positioned_embedding.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Tensor;

TEMPLATE_LIST_TEST_CASE("PositionedEmbedding: a token's vector and its place's", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::PositionedEmbedding<T, B> embedding(5, 4, 3, Random(1));
  const auto ids = Tensor<Index, B>::from({2, 3}, {4, 0, 4, 1, 2, 3});
  infty::Pass<T, B> pass;
  const auto x = embedding.forward(ids, pass).value().to_vector();
  const auto tokens = embedding.tokens.weight.value().to_vector(),
             places = embedding.places.weight.value().to_vector();
  const std::vector<std::size_t> all{4, 0, 4, 1, 2, 3};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t at = i / 3, c = i % 3;
    CHECK(x[i] == tokens[all[at] * 3 + c] + places[at % 3 * 3 + c]);
  }
  CHECK_THROWS_WITH(embedding.forward(Tensor<Index, B>::zeros({1, 5}), pass),
                    "[PositionedEmbedding] tokens are [1, 5]: they must be [B, L], L at most 4");
  Random random(2);
  infty::Pass<T, B> dropping{.random = &random, .dropout = .5};
  CHECK(embedding.forward(ids, dropping).value().to_vector() != x);
}
