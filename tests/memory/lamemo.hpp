// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/memory/lamemo.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/catch.hpp"

namespace infty::tests {

/// Each ablation, and two at once, of a memory of so many vectors.
inline std::vector<LaMemoConfig> ablations(Index capacity) {
  constexpr auto transformer_xl = LaMemoPositions::transformer_xl;
  return {{.capacity = capacity, .look_ahead = false},
          {.capacity = capacity, .interpolation = false},
          {.capacity = capacity, .positions = transformer_xl},
          {.capacity = capacity, .interpolation = false, .positions = transformer_xl}};
}

/// The memory as it is, and each ablation.
inline std::vector<LaMemoConfig> all_options(Index capacity) {
  auto all = ablations(capacity);
  all.insert(all.begin(), {.capacity = capacity});
  return all;
}

/// Two layers of a LaMemo over five tokens.
using SmallModel = TransformerLM<LaMemo<double>>;

/// The sizes of a `SmallModel`.
inline TransformerConfig two_layers(bool pre_norm) {
  return {.vocabulary = 5,
          .model_dim = 4,
          .layers = 2,
          .heads = 2,
          .head_dim = 3,
          .feed_forward = 5,
          .pre_norm = pre_norm};
}

/// Drawn, with biases that are no zeros.
inline SmallModel small_model(bool pre_norm, const LaMemoConfig& config,
                              Random drawn = Random(seed)) {
  SmallModel model(two_layers(pre_norm), config, drawn);
  Random random(3);
  auto& memory = model.body.inner.layers.front().mixer;  // whose biases are all layers'
  for (auto* x :
       {&memory.attention.content_bias, &memory.attention.position_bias, &memory.future_bias})
    fill_uniform(x->value(), -1, 1, random);
  return model;
}

/// [batch, length] of the five.
inline Tensor<Index> drawn_tokens(Index batch, Index length, Random& random) {
  Tensor<Index> x(Shape{batch, length});
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = random.below(5);
  return x;
}

}  // namespace infty::tests
