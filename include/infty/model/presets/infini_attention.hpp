// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/infini_config.hpp>
#include <infty/model/presets.hpp>

namespace infty::presets {

// Beside a value stands its source: P is the paper [Munkhdalai et al. 2024, §4.1], whose text was
// not read here; its numbers are repeated from memory and unverified. Q is a sentence of it that is
// quoted in https://www.reddit.com/r/LocalLLaMA/comments/1c13rd9: segments of 2048 in all layers,
// texts of 32768. L is the program lucidrains/infini-transformer-pytorch at 5774bb3.

/// The language model of long texts (PG19, Arxiv-math), for a `TransformerLM<InfiniAttention<T>>`.
/// It is trained by Adafactor (P), whose rate is none for Adam: `learning_rate` is left at 0.
/// @param delta  whether it is "Linear + Delta", else "Linear"
inline ExperimentWith<InfiniConfig> infini_attention(bool delta = true) {
  ExperimentWith<InfiniConfig> e;
  e.model.vocabulary = 32000;    // not said; a usual size of a SentencePiece vocabulary
  e.model.model_dim = 1024;      // P: 8 heads of 128
  e.model.layers = 12;           // P
  e.model.heads = 8;             // P
  e.model.head_dim = 128;        // P
  e.model.feed_forward = 4096;   // P
  e.model.pre_norm = true;       // L
  e.memory.segment = 2048;       // P, Q
  e.memory.delta = delta;        // P: both
  e.memory.rotary_base = 10000;  // L; P does not say which positions
  e.length = 32768;              // P, Q, tokens of a text
  e.segment = 2048;              // P, Q
  e.batch = 64;                  // P
  e.warmup_steps = 1000;         // P
  e.decay = Decay::cosine;       // P
  return e;
}

}  // namespace infty::presets
