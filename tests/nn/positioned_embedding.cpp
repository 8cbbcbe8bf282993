// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/nn/positioned_embedding.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Tensor;

TEMPLATE_LIST_TEST_CASE("PositionedEmbedding: a token's vector and its place's", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::PositionedEmbedding<T, B> embedding(5, 4, 3, infty::Random(1), 1);
  const std::vector<Index> ids{4, 0, 4, 2, 2, 1};
  infty::Pass<T, B> pass;
  const auto got = embedding.forward(Tensor<Index, B>::from({2, 3}, ids), pass);
  REQUIRE(got.shape() == infty::Shape{2, 3, 3});
  const auto tokens = embedding.tokens.weight.value().to_vector(),
             places = embedding.places.weight.value().to_vector();
  std::vector<T> wanted;
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t c = 0; c < 3; ++c)
      wanted.push_back(tokens[static_cast<std::size_t>(ids[i]) * 3 + c] + places[i % 3 * 3 + c]);
  CHECK(got.value().to_vector() == wanted);
  const auto too_long = Tensor<Index, B>::from({1, 5}, {0, 0, 0, 0, 0});
  CHECK_THROWS_AS(embedding.forward(too_long, pass), infty::ShapeError);
}
