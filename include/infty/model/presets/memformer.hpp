// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/joint_slots.hpp>
#include <infty/memory/memformer.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/model/presets.hpp>

/// Experiments with a Memformer. P is the paper [Wu et al. 2022], M the program of its first author
/// (memformers, models/membart).
namespace infty::presets {

/// Language modelling on WikiText-103 [Wu et al. 2022, §4]. P has an encoder of 4 layers, which
/// reads and writes the slots, and a decoder of 16, which scores the next segment; a language model
/// of segments is one stack, here of the decoder's layers. What it is trained with, and by how many
/// pairs of bytes, is not known here.
inline ExperimentWith<MemformerConfig<NoMemoryConfig, SlotConfig>> memformer_wikitext103() {
  ExperimentWith<MemformerConfig<NoMemoryConfig, SlotConfig>> e;
  e.model.vocabulary = 50257;   // GPT-2's pairs of bytes; P: pairs of bytes
  e.model.model_dim = 512;      // P
  e.model.layers = 16;          // P, of the decoder
  e.model.heads = 8;            // P
  e.model.head_dim = 64;        // P
  e.model.feed_forward = 2048;  // P
  e.memory.slots.slots = 1024;  // P; 512 in an ablation
  e.segment = 128;              // P
  return e;
}

/// The encoder of "membart-base": the sizes of BART, width 768 (M).
inline JointSlotConfig membart_base() {
  return {.slots = 64, .layers = 6, .heads = 12, .feed_forward = 3072};
}

}  // namespace infty::presets
