// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>

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

using TheLayer = infty::TransformerLayer<double, infty::GaussianDensity, infty::EigenBackend>;

TransformerConfig config(bool pre_norm) {
  TransformerConfig settings{.model_dim = 4,
                             .heads = 2,
                             .feed_forward = 3,
                             .short_term = 2,
                             .long_term_stride = 1,
                             .pre_norm = pre_norm};
  settings.long_term = {.basis = 4, .widths = {.2}, .samples = 3};
  return settings;
}

LayerCall<double> call() {
  const Variable<double> zero(Tensor<double>::zeros({2, 2}));
  return {zero, zero, infty::distance_encoding<double>(10, 4)};
}

}  // namespace

TEST_CASE("TransformerLayer: where nothing is added the norms alone are left") {
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<double>({2, 3, 4}, random);
  for (const bool pre_norm : {false, true}) {
    TheLayer layer(config(pre_norm), Random(1));
    layer.attention.out.weight.value().fill(0);
    layer.long_term->out.weight.value().fill(0);
    layer.feed_forward.outer.weight.value().fill(0);
    layer.feed_forward.outer.bias.value().fill(0);
    auto state = layer.make_state(2, 0);
    const auto y = layer.forward(state, Variable<double>(x), call(), nullptr).value().to_vector();
    const infty::LayerNorm<double> norm(4);
    const auto expected = pre_norm
                              ? x.to_vector()
                              : norm.forward(norm.forward(Variable<double>(x))).value().to_vector();
    CHECK(y == expected);
  }
}

TEST_CASE("TransformerLayer: the memories' parts are added, Z = Z_T + Z_LTM") {
  Random random(infty::tests::seed);
  TheLayer layer(config(true), Random(1));
  layer.feed_forward.outer.weight.value().fill(0);
  layer.feed_forward.outer.bias.value().fill(0);
  auto state = layer.make_state(1, 0);
  const auto segment = [&] {
    return Variable<double>(infty::tests::uniform_tensor<double>({1, 5, 4}, random));
  };
  layer.forward(state, segment(), call(), nullptr);
  const auto x = segment();
  // Both parts, then each alone, of the same state.
  const auto answer = [&](bool attention, bool memory) {
    TheLayer part = layer;
    const Variable<double> zero(Tensor<double>::zeros({4, 4}));
    if (!attention) part.attention.out.weight = zero;
    if (!memory) part.long_term->out.weight = zero;
    auto branch = state;
    return part.forward(branch, x, call(), nullptr).value().to_vector();
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
  const TheLayer layer(config(false), Random(1));
  auto state = layer.make_state(1, 0);
  const auto x = infty::tests::uniform_tensor<double>({1, 5, 4}, random);
  Variable<double> density;
  layer.forward(state, Variable<double>(x), call(), &density);
  CHECK(density.shape() == Shape{2, 1, 2, 5});
  const auto flat = x.reshape({5, 4});
  CHECK(state.short_term.recent.vectors.to_vector() == flat.slice(3, 5).to_vector());
  CHECK(state.long_term->leaving.vectors.to_vector() == flat.slice(0, 3).to_vector());
  CHECK(state.long_term->memory.written == RowCounts{0});
  layer.observe(state, Variable<double>(x));
  CHECK(state.long_term->memory.written == RowCounts{3});
  CHECK(state.long_term->leaving.length == RowCounts{5});
}
