// SPDX-License-Identifier: MIT
#include <infty/autograd/clone.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/nn/any_layer.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/nn/layer_norm.hpp>

#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::AnyLayer;
using infty::Index;
using infty::Variable;
using infty::tests::numbers_of;

TEMPLATE_LIST_TEST_CASE("AnyLayer: does what the layer inside does, with a state and without", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Memory = infty::ShortTermMemory<T, B>;
  using Feed = infty::FeedForward<T, B>;
  const Memory memory({.capacity = 3}, {.model_dim = 4, .heads = 2, .head_dim = 3},
                      infty::Random(1));
  const Feed feed(4, 5, infty::Random(2));
  const infty::LayerNorm<T, B> layer_norm(4);
  const infty::InputNorm<T, B> norm(layer_norm);
  const AnyLayer<T, B> any_memory(memory), any_feed(feed);
  auto state = memory.make_state(2);
  auto any_state = any_memory.make_state(2);
  auto none = any_feed.make_state(2);
  infty::Random random(infty::tests::seed);
  for (const Index length : {2, 1, 4}) {
    const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, length, 4}, random));
    infty::Pass<T, B> pass;
    const auto y = memory.forward(state, x, norm, pass);
    CHECK(any_memory.forward(any_state, x, norm, pass).value().to_vector() ==
          y.value().to_vector());
    CHECK(any_feed.forward(none, y, norm, pass).value().to_vector() ==
          feed.forward(norm(y), pass).value().to_vector());
    CHECK(numbers_of(any_state) == numbers_of(state));
  }
  CHECK(infty::bytes_of(none) == 0);
  CHECK(any_memory.template get<Memory>() != nullptr);
  CHECK(any_memory.template get<Feed>() == nullptr);
  infty::Pass<T, B> pass;
  const Variable<T, B> x(infty::Tensor<T, B>::zeros({2, 1, 4}));
  CHECK_THROWS_AS(any_memory.forward(none, x, norm, pass), infty::ShapeError);
}

TEST_CASE("AnyLayer: a copy has the same weights, a clone its own, and the layer keeps its") {
  const infty::Random random(1);
  infty::AnyLayer<float> any(infty::FeedForward<float>(3, 4, random));
  const auto before = infty::parameters<float>(any);
  auto copy = any;
  auto own = infty::clone(any);
  const auto now = infty::parameters<float>(any), copied = infty::parameters<float>(copy),
             cloned = infty::parameters<float>(own);
  REQUIRE(before.size() == 4);
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(same(now[i], before[i]));
    CHECK(same(copied[i], before[i]));
    CHECK_FALSE(same(cloned[i], before[i]));
    CHECK(cloned[i].value().to_vector() == before[i].value().to_vector());
  }
}
