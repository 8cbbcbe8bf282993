// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/titans.hpp>
#include <infty/model/presets.hpp>

namespace infty::presets {

/// A neural memory beside attention, for a `TransformerLM<WithMemory<ShortTermMemory<T>,
/// TitansMemory<T>>>` of the bytes of enwik8. The paper's own program is not public, and its sizes
/// were not read [Behrouz et al. 2025]: this is train_mac.py of lucidrains/titans-pytorch at
/// 219929a, M, as far as it is of this library. There the memory is read in front of the segment,
/// in layers 2, 4 and 6 and with 4 heads; keys and queries have a gain; chunks are averaged with
/// learned weights, surprise is orthogonalised, layers learn rates of their own and take weights
/// from the memory below; the optimiser is AdoptAtan2.
inline ExperimentWith<WithMemoryConfig<ShortTermConfig, TitansConfig>> titans_enwik8() {
  ExperimentWith<WithMemoryConfig<ShortTermConfig, TitansConfig>> e;
  e.model.vocabulary = 256;          // M
  e.model.model_dim = 384;           // M
  e.model.layers = 8;                // M
  e.model.heads = 8;                 // M, by default
  e.model.head_dim = 64;             // M, by default
  e.model.feed_forward = 1536;       // M, by default: 4 times the width
  e.model.pre_norm = true;           // M
  e.model.tie_embedding = false;     // M
  e.memory.attention.capacity = 32;  // M: a sliding window of a segment
  TitansConfig& memory = *e.memory.memory;
  memory.depth = 2;            // M
  memory.hidden = 128;         // M, by default: twice the width of a head
  memory.chunk = 4;            // M
  memory.weights_every = 128;  // M
  memory.max_rate = .1;        // M
  memory.momentum = true;      // M
  memory.silu = false;         // M
  memory.unit = true;          // M: RMS norms with a gain
  e.length = 512;              // M
  e.segment = 32;              // M
  e.batch = 16;                // M: 4, four times before a step
  e.steps = 100000;            // M
  e.learning_rate = 2e-4;      // M: constant
  e.max_norm = .5;             // M
  return e;
}

}  // namespace infty::presets
