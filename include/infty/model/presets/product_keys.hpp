// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/memory/product_key_config.hpp>
#include <infty/train/adam.hpp>

/// Experiments with product-key memories. P is the paper [Lample et al. 2019], X its program, XLM;
/// M is the program of Memory Layers at Scale [Berges et al. 2024] at commit 7f85280.
namespace infty::presets {

/// A transformer in which product-key memories take the place of some feed-forward layers.
struct ProductKeyExperiment {
  ProductKeyConfig memory;    ///< constants of each memory
  Index model_dim = 0;        ///< width of the model
  Index depth = 0;            ///< layers in all
  std::vector<Index> layers;  ///< those with a memory, from 0
  bool share_values = false;  ///< whether they are siblings: `ProductKeyMemory::sibling`
  AdamConfig adam = {};       ///< of all but the values
  double values_rate = 0;     ///< fixed, of the values alone: `Trainer::fix_rate`
};

/// Language models on Common Crawl news, the 16-layer one with two memories [Lample et al. 2019,
/// §4].
inline ProductKeyExperiment product_keys() {
  ProductKeyExperiment e;
  e.memory = {.sub_keys = 512,                                    // P §4
              .heads = 4,                                         // P §4
              .k = 32,                                            // P §4
              .key_dim = 512,                                     // P §3.1; X's default: 256
              .query_batch_norm = true};                          // P §3; X's default: off
  e.model_dim = 1024;                                             // P §4: or 1,600
  e.depth = 16;                                                   // P §4: or 12, 24
  e.layers = {5, 11};                                             // P §4, the 6th and the 12th
  e.adam = {.learning_rate = 2.5e-4, .beta1 = .9, .beta2 = .98};  // P §4
  e.values_rate = 1e-3;                                           // X's default
  return e;
}

/// "Memory+", three memories of one table of values in a model of 24 layers [Berges et al. 2024].
/// Of its training the values' rate alone is known here.
inline ProductKeyExperiment memory_plus(Index model_dim = 1024) {
  ProductKeyExperiment e;
  e.memory = {.sub_keys = 1024,                         // M
              .heads = 4,                               // M
              .k = 32,                                  // M
              .key_dim = 512,                           // M
              .query_batch_norm = false,                // M
              .key_bound = 0.04419417382415922,         // M: 1 / √key_dim, not of its half
              .output = ProductKeyOutput::silu_gated};  // M, the paper's "Memory+"
  e.model_dim = model_dim;
  e.depth = 24;            // M
  e.layers = {4, 12, 20};  // M
  e.share_values = true;   // M
  e.values_rate = 1e-3;    // M
  return e;
}

}  // namespace infty::presets
