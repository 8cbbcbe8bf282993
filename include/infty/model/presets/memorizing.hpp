// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/memorizing_attention.hpp>
#include <infty/model/presets.hpp>

namespace infty::presets {

/// The layer of a Memorizing Transformer, from 1, that has the memory; the others attend to the
/// segment and the cache [Wu et al. 2022, §4.2]; the fourth from the last in the authors' program,
/// https://github.com/google-research/meliad, transformer/configs/options/external_memory_8k.gin.
inline constexpr Index memorizing_layer = 9;

/// The Memorizing Transformer [Wu et al. 2022, §4.2], as it was trained on books, mathematics, code
/// and web texts: `memory` is that of layer `memorizing_layer` alone. P is the paper, of which §4.2
/// was read in excerpts; G the configurations of the authors' program, transformer/configs/ of
/// https://github.com/google-research/meliad at cc1aef5 and fc4b036; U stands where neither says,
/// and the value is unverified. Where P and G differ, P is taken: G retrieves 128 in
/// options/external_memory_8k.gin. The optimiser is Adafactor (P, G) at a rate of 1 that falls with
/// the root of the steps, which is not Adam's: the rate here is Transformer-XL's.
/// @param capacity  entries that are remembered, 8,192 to 262,144 in P
/// @param cache     vectors of a Transformer-XL cache; P has models with one and without, G: of
/// 512, window_length in base_memory.gin
/// @throws infty::ValueError unless 32 <= capacity and 0 <= cache
inline ExperimentWith<MemorizingConfig> memorizing_transformer(Index capacity = 8192,
                                                               Index cache = 512) {
  ExperimentWith<MemorizingConfig> e;
  e.model.vocabulary = 32000;    // U: sentence pieces; G: 32,128 in tasks/pg19_tokens.gin
  e.model.model_dim = 1024;      // P, G: size/medium_150M.gin
  e.model.layers = 12;           // P, G
  e.model.heads = 8;             // P, G
  e.model.head_dim = 128;        // P, G
  e.model.feed_forward = 4096;   // P, G: size/medium_150M.gin
  e.model.pre_norm = true;       // the authors' program
  e.model.tie_embedding = true;  // U
  e.model.dropout = .05;         // G: base_memory.gin, of attention as well
  e.memory.capacity = capacity;
  e.memory.k = 32;  // P
  e.memory.cache = cache;
  e.memory.validate();
  e.segment = 512;           // G: base_memory.gin
  e.batch = 256;             // U: 2^17 tokens
  e.steps = 500000;          // G: tasks/pg19_tokens.gin
  e.warmup_steps = 1000;     // G: trainer_configuration.gin
  e.learning_rate = .00025;  // see above
  e.max_norm = .25;          // see above
  return e;
}

}  // namespace infty::presets
