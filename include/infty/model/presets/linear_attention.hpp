// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/linear_attention.hpp>
#include <infty/model/presets/memsizer.hpp>

namespace infty::presets {

/// The linear transformer's generator of MNIST's images [Katharopoulos et al. 2020, §4.2], for a
/// `TransformerLM<PlacedMixer<LinearAttention<T>>>`. The constants are those of the authors'
/// program (image-generation of idiap/linear-transformer-experiments at 0a54093, its command and
/// defaults); the paper was not read. The program predicts a brightness by ten logistics, where
/// this model has a softmax over all 256, puts the encoding of a place behind that of a brightness,
/// where this adds them, and is trained by RAdam, whose weight decay is .01.
inline ExperimentWith<LinearAttentionConfig> linear_transformer_mnist() {
  ExperimentWith<LinearAttentionConfig> e;
  e.model.vocabulary = 256;
  e.model.model_dim = 256;
  e.model.layers = 8;
  e.model.heads = 8;
  e.model.head_dim = 32;
  e.model.feed_forward = 1024;
  e.model.dropout = .1;
  e.memory.bias = true;
  e.length = e.segment = 784;
  e.batch = 16;
  e.steps = 937500;
  e.learning_rate = 1e-4;
  e.decay = Decay::constant;
  return e;
}

// The rivals of [Zhang & Cai 2022, §4]: linear attention with features of three kinds, in the place
// that MemSizer takes. Numbers of features are those of the language models in the papers named, as
// they are remembered: not checked.

/// Random feature attention, RFA [Peng et al. 2021]: Gaussian features of 64 random projections, or
/// arc-cosine ones. @param gate  RFA-Gate, which forgets [§3.2]
inline LinearAttentionConfig rfa(bool gate = false, FeatureMap features = FeatureMap::gaussian) {
  return {.features = features, .feature_dim = 64, .gate = gate, .bias = true};
}

/// T2R [Kasai et al. 2021]: 32 features a head that are learned, relu(W x + b). It is meant to be
/// made of a trained transformer by `with_mixer`, and to be trained on.
inline LinearAttentionConfig t2r() {
  return {.features = FeatureMap::learned, .feature_dim = 32, .bias = true};
}

/// MemSizer's language model of WikiText-103 with a rival in its place, `rfa()`, `t2r()` or `{}`
/// for elu + 1, for a `TransformerLM<PlacedMixer<LinearAttention<T>>>`.
inline ExperimentWith<LinearAttentionConfig> memsizer_rival(LinearAttentionConfig config) {
  auto e = detail::memsizer_language_model<LinearAttentionConfig>();
  e.memory = config;
  return e;
}

}  // namespace infty::presets
