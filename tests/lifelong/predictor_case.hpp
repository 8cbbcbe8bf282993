// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <infty/lifelong/predictor.hpp>
#include <infty/model/blocks.hpp>
#include <infty/nn/positioned_embedding.hpp>
#include <infty/nn/self_attention.hpp>

namespace infty::tests {

/// A small encoder under a head.
template <class Head, class Mixer>
using SmallPredictor =
    Predictor<PositionedEmbedding<typename Mixer::Scalar, typename Mixer::BackendType>,
              Layers<Block<Mixer>>, Head>;

/// One that knows 11 tokens, and texts of up to 8.
template <class Head, class Mixer>
SmallPredictor<Head, Mixer> small_predictor(Head head, std::uint64_t draws = 3, Index layers = 1) {
  using T = typename Mixer::Scalar;
  using B = typename Mixer::BackendType;
  const TransformerConfig config{
      .vocabulary = 11, .model_dim = 4, .layers = layers, .heads = 2, .feed_forward = 5};
  return {PositionedEmbedding<T, B>(11, 8, 4, Random(draws), .7),
          blocks<Mixer>(config, {}, Random(draws + 1)), std::move(head)};
}

/// A classifier of 3 classes whose tokens see each other.
template <class T, class B = EigenBackend>
SmallPredictor<ClassHead<T, B>, SelfAttention<T, B>> small_classifier(std::uint64_t draws = 3) {
  return small_predictor<ClassHead<T, B>, SelfAttention<T, B>>(
      ClassHead<T, B>(4, 3, Random(draws + 2)), draws);
}

/// n examples of several lengths; a class is the first token's, and the second's, modulo 3.
inline std::vector<Example> small_examples(Index n, std::uint64_t draws = 1) {
  Random random(draws);
  std::vector<Example> out;
  for (Index i = 0; i < n; ++i) {
    Example e;
    for (Index length = 3 + random.below(3); length > 0; --length)
      e.tokens.push_back(random.below(11));
    e.labels = {(e.tokens[0] + e.tokens[1]) % 3};
    out.push_back(e);
  }
  return out;
}

}  // namespace infty::tests
