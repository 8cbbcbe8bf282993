// SPDX-License-Identifier: MIT
// More of it, with memories inside and in whole models, stands in model/language_model.cpp.

#include <utility>

#include <infty/autograd/parameters.hpp>
#include <infty/nn/any_layer.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/nn/layer_norm.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::AnyLayer;
using infty::Index;
using infty::Random;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("AnyLayer: answers as the layer inside, whose parameters are its own", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Any = AnyLayer<T, B>;
  static_assert(infty::SequenceLayer<Any>);
  const infty::FeedForward<T, B> feed(6, 8, Random(1));
  const infty::LayerNorm<T, B> norm(6);
  Any any(feed);
  Random random(infty::tests::seed);
  const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, 3, 6}, random));
  infty::Pass<T, B> pass;
  auto state = any.make_state(2);
  const infty::InputNorm<T, B> none, in_front(norm);
  CHECK(any.forward(state, x, none, pass).value().to_vector() ==
        feed.forward(x, pass).value().to_vector());
  CHECK(any.forward(state, x, in_front, pass).value().to_vector() ==
        feed.forward(norm.forward(x), pass).value().to_vector());
  CHECK(infty::count_parameters(any) == infty::count_parameters(feed));
  CHECK(any.template get<infty::FeedForward<T, B>>() != nullptr);
  CHECK(any.template get<infty::LayerNorm<T, B>>() == nullptr);
  // A copy has the same weights.
  const Any copy = any;
  fill_uniform(any.template get<infty::FeedForward<T, B>>()->outer.bias.value(), 1, 2, random);
  auto own = copy.make_state(2);
  CHECK(copy.forward(own, x, none, pass).value().to_vector() ==
        any.forward(state, x, none, pass).value().to_vector());
  // What was moved from, and what never held one, is refused.
  Any moved = std::move(any);
  CHECK_THROWS_AS(any.make_state(1), infty::ValueError);
  CHECK_THROWS_WITH(any.forward(state, x, none, pass),
                    "[AnyLayer::forward] there is no layer inside");
  auto begun = moved.make_state(1);
  const auto taken = std::move(begun);
  CHECK_THROWS_AS(moved.forward(begun, x, none, pass), infty::ShapeError);
}
