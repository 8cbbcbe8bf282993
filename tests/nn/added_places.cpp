// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/nn/added_places.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

TEMPLATE_LIST_TEST_CASE("AddedPlaces: every row gets the vectors of its places", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::AddedPlaces<T, B> places(4, 2, infty::Random(1), 1);
  infty::Random random(infty::tests::seed);
  const infty::Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, 3, 2}, random));
  infty::Pass<T, B> pass;
  auto wanted = x.value().to_vector();
  const auto table = places.places.weight.value().to_vector();
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += table[i % 6];
  CHECK(places.forward(x, pass).value().to_vector() == wanted);
  const infty::Variable<T, B> longer(infty::Tensor<T, B>::zeros({1, 5, 2}));
  CHECK_THROWS_AS(places.forward(longer, pass), infty::ShapeError);
}
