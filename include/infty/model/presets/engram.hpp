// SPDX-License-Identifier: MIT
#pragma once

#include <utility>
#include <vector>

#include <infty/memory/engram_config.hpp>

namespace infty::presets {

/// The lookup of deepseek-ai/Engram's demo, engram_demo_v1.py at 11a020e, D, for a model of 30
/// layers and width 1,024 in each of 4 branches: `Engram<T>(engram_demo(lookup), 4 * 1024)`. With
/// 8 tables of 646,400 rows of 64 numbers for each n it has 662 million of them a layer. P is the
/// paper [DeepSeek 2026].
/// @param lookup  of the tokenizer's tokens, as `compressed_vocabulary` finds it; D: DeepSeek-V3's
/// @param layer   1 or 15, in front of which it stands (D; P counts from 1)
/// @param as_program  the gate takes a root, and the convolution's taps are drawn (D); P has
/// neither
inline EngramConfig engram_demo(std::vector<Index> lookup, Index layer = 1,
                                bool as_program = false) {
  EngramConfig config;
  config.lookup = std::move(lookup);
  config.pad = 2;                         // D
  config.max_ngram = 3;                   // D, P
  config.heads = 8;                       // D, P
  config.width = 512;                     // D
  config.table_sizes = {646400, 646400};  // D: 5 times the vocabulary
  config.layer = layer;
  config.layers = {1, 15};  // D
  config.seed = 0;          // D
  config.kernel = 4;        // D, P
  config.dilation = 3;      // D, P: the largest n
  config.branches = 4;      // D, P
  config.gate_root = as_program;
  config.draw_taps = as_program;
  return config;
}

}  // namespace infty::presets
