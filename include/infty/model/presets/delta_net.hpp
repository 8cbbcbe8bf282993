// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/delta_net.hpp>
#include <infty/model/presets.hpp>

namespace infty::presets {

// M is the program of the papers' authors, fla-org/flash-linear-attention, the defaults of its
// models at 038bdb3 (DeltaNet) and 0315a70 (Gated DeltaNet); how they were trained it does not say.
// Its feed is a SwiGLU of 5,632, which has the parameters of the 8,192 of a `TransformerLM`; its
// norms are RMS norms.

/// The DeltaNet of some 1.4 billion parameters, for a `TransformerLM<DeltaNet<T>>`.
inline ExperimentWith<DeltaNetConfig> delta_net() {
  ExperimentWith<DeltaNetConfig> e;
  e.model.vocabulary = 32000;     // M
  e.model.model_dim = 2048;       // M
  e.model.layers = 24;            // M
  e.model.heads = 16;             // M
  e.model.head_dim = 128;         // M: expand_k is 1
  e.model.feed_forward = 8192;    // M: hidden_ratio is 4
  e.model.pre_norm = true;        // M
  e.model.tie_embedding = false;  // M
  e.model.dropout = 0;            // M
  e.memory.value_dim = 128;       // M: expand_v is 1
  e.memory.convolution = 4;       // M
  e.memory.gate = false;          // M
  e.memory.norm_epsilon = 1e-6;   // M; its layer by itself: 1e-5
  e.segment = 2048;               // M: max_position_embeddings
  return e;
}

/// The Gated DeltaNet of some 1.4 billion parameters, for a `TransformerLM<GatedDeltaNet<T>>`.
inline ExperimentWith<GatedDeltaNetConfig> gated_delta_net() {
  ExperimentWith<GatedDeltaNetConfig> e;
  e.model.vocabulary = 32000;     // M
  e.model.model_dim = 2048;       // M
  e.model.layers = 21;            // M
  e.model.heads = 6;              // M
  e.model.head_dim = 256;         // M
  e.model.feed_forward = 8192;    // M: hidden_ratio is 4
  e.model.pre_norm = true;        // M
  e.model.tie_embedding = false;  // M
  e.model.dropout = 0;            // M
  e.memory.value_dim = 512;       // M: expand_v is 2
  e.memory.convolution = 4;       // M
  e.memory.gate = true;           // M
  e.memory.norm_epsilon = 1e-6;   // M; its layer by itself: 1e-5
  e.segment = 2048;               // M: max_position_embeddings
  return e;
}

}  // namespace infty::presets
