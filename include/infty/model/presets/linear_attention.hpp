// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/linear_attention.hpp>
#include <infty/model/presets/memsizer.hpp>

namespace infty::presets {

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
