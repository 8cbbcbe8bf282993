// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/associative_memory.hpp>
#include <infty/model/presets.hpp>

namespace infty::presets {

/// One experiment of an Associative Recurrent Memory Transformer.
struct ArmtExperiment : ExperimentWith<AssociativeConfig> {
  Index tokens = 0;    ///< memory tokens behind every segment
  Index segments = 0;  ///< of a sequence, at most; training begins with one and adds some
};

/// GPT-2 with a memory in every layer, trained on BABILong [Rodkin et al. 2024]. All values are
/// those of the authors' program, RodkinIvan/associative-recurrent-memory-transformer at aa145de,
/// `scripts/babilong/finetune_babilong_amt.sh`, which begins with the weights of `gpt2`; and of
/// `gpt2` itself. `weight_decay` of Adam is 0.01.
inline ArmtExperiment armt_babilong() {
  ArmtExperiment e;
  e.model.vocabulary = 50257;
  e.model.model_dim = 768;
  e.model.layers = 12;
  e.model.heads = 12;
  e.model.feed_forward = 3072;
  e.model.pre_norm = true;
  e.model.tie_embedding = true;
  e.model.dropout = 0.1;
  e.memory.key_dim = 64;
  e.memory.nu = 3;
  e.tokens = 10;
  e.segments = 32;
  e.segment = 512;
  e.length = 32 * 512;
  e.batch = 64;
  e.steps = 10000;
  e.learning_rate = 1e-4;
  e.warmup_steps = 1000;
  e.decay = Decay::linear;  // to 0 at twice the steps
  e.max_norm = 1;
  return e;
}

}  // namespace infty::presets
