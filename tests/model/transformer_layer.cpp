// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>

#include <infty/memory/memory_pair.hpp>
#include <infty/model/transformer_layer.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::LayerCall;
using infty::Random;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::TransformerConfig;
using infty::Variable;

namespace {

using TheMemory = infty::InftyMemory<double>;
using TheLayer = infty::TransformerLayer<TheMemory>;

TheLayer make_layer(bool pre_norm) {
  const TransformerConfig settings{
      .model_dim = 4, .heads = 2, .feed_forward = 3, .pre_norm = pre_norm};
  const infty::InftyConfig memory{
      .short_term = {.capacity = 2, .stride = 1},
      .long_term = infty::LongTermConfig{.basis = 4, .widths = {.2}, .samples = 3}};
  return TheLayer(settings, memory, Random(1));
}

LayerCall<TheMemory> call() {
  return {infty::AttentionBiases<double>({.model_dim = 4, .heads = 2, .head_dim = 2}),
          infty::distance_encoding<double>(10, 4)};
}

}  // namespace

TEST_CASE("TransformerLayer: where nothing is added the norms alone are left") {
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<double>({2, 3, 4}, random);
  for (const bool pre_norm : {false, true}) {
    TheLayer layer = make_layer(pre_norm);
    layer.attention.out.weight.value().fill(0);
    layer.memory.long_term->out.weight.value().fill(0);
    layer.feed_forward.outer.weight.value().fill(0);
    layer.feed_forward.outer.bias.value().fill(0);
    auto state = layer.memory.make_state(2, 0);
    const auto y = layer.forward(state, Variable<double>(x), call()).hidden.value().to_vector();
    const infty::LayerNorm<double> norm(4);
    const auto expected = pre_norm
                              ? x.to_vector()
                              : norm.forward(norm.forward(Variable<double>(x))).value().to_vector();
    CHECK(y == expected);
  }
}

TEST_CASE("TransformerLayer: the memories' parts are added, Z = Z_T + Z_LTM") {
  Random random(infty::tests::seed);
  TheLayer layer = make_layer(true);
  layer.feed_forward.outer.weight.value().fill(0);
  layer.feed_forward.outer.bias.value().fill(0);
  auto state = layer.memory.make_state(1, 0);
  const auto segment = [&] {
    return Variable<double>(infty::tests::uniform_tensor<double>({1, 5, 4}, random));
  };
  layer.forward(state, segment(), call());
  const auto x = segment();
  // Both parts, then each alone, of the same state.
  const auto answer = [&](bool attention, bool memory) {
    TheLayer part = layer;
    const Variable<double> zero(Tensor<double>::zeros({4, 4}));
    if (!attention) part.attention.out.weight = zero;
    if (!memory) part.memory.long_term->out.weight = zero;
    auto branch = state;
    return part.forward(branch, x, call()).hidden.value().to_vector();
  };
  const auto both = answer(true, true), one = answer(true, false), other = answer(false, true);
  const auto input = x.value().to_vector();
  double memory_part = 0;
  for (std::size_t i = 0; i < both.size(); ++i) {
    CHECK(std::abs(both[i] - (one[i] + other[i] - input[i])) < 1e-14);
    memory_part = std::max(memory_part, std::abs(other[i] - input[i]));
  }
  CHECK(memory_part > 1e-4);
}

TEST_CASE("TransformerLayer: memory holds the inputs; what has left is written by the next call") {
  Random random(infty::tests::seed);
  const TheLayer layer = make_layer(false);
  auto state = layer.memory.make_state(1, 0);
  const auto x = infty::tests::uniform_tensor<double>({1, 5, 4}, random);
  const auto density = layer.forward(state, Variable<double>(x), call()).density;
  CHECK(density.shape() == Shape{2, 1, 2, 5});
  const auto flat = x.reshape({5, 4});
  CHECK(state.short_term.recent.vectors.to_vector() == flat.slice(3, 5).to_vector());
  CHECK(state.long_term->leaving.vectors.to_vector() == flat.slice(0, 3).to_vector());
  CHECK(state.long_term->memory.written == RowCounts{0});
  layer.observe(state, Variable<double>(x), call());
  CHECK(state.long_term->memory.written == RowCounts{3});
  CHECK(state.long_term->leaving.length == RowCounts{5});
}
