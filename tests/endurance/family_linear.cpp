// SPDX-License-Identifier: MIT
#include <infty/memory/delta_net.hpp>
#include <infty/memory/feature_map.hpp>
#include <infty/memory/gated_delta_net.hpp>
#include <infty/memory/infini_attention.hpp>
#include <infty/memory/linear_attention.hpp>
#include <infty/memory/memsizer.hpp>
#include <infty/memory/memsizer_layer.hpp>

#include "endurance/family.hpp"

namespace endurance {

void add_linear(Trials& trials) {
  add_mixer<infty::LinearAttention<float>>(trials, "linear", {}, 1e9);
  add_mixer<infty::LinearAttention<float>>(trials, "linear, without a norm", {.normalized = false},
                                           1e9);
  using infty::FeatureMap;
  add_mixer<infty::LinearAttention<float>>(
      trials, "linear, of x itself", {.features = FeatureMap::identity, .normalized = false}, 1e9);
  add_mixer<infty::LinearAttention<float>>(trials, "RFA", {.features = FeatureMap::gaussian}, 1e9);
  add_mixer<infty::LinearAttention<float>>(trials, "RFA, gated",
                                           {.features = FeatureMap::gaussian, .gate = true}, 1e9);
  add_mixer<infty::LinearAttention<float>>(trials, "RFA, arc-cosine",
                                           {.features = FeatureMap::arc_cosine, .gate = true}, 1e9);
  add_mixer<infty::LinearAttention<float>>(trials, "T2R", {.features = FeatureMap::learned}, 1e9);
  add_mixer<infty::DeltaNet<float>>(trials, "DeltaNet", {}, 1e30);
  add_mixer<infty::GatedDeltaNet<float>>(trials, "Gated DeltaNet", {}, 1e30);
  add_mixer<infty::GatedDeltaNet<float>>(trials, "Gated DeltaNet, beta to 2",
                                         {.negative_eigenvalues = true}, 1e30);
  add_mixer<infty::DeltaNet<float>>(trials, "DeltaNet, beta to 2", {.negative_eigenvalues = true},
                                    1e30);
  add_mixer<infty::InfiniAttention<float>>(trials, "Infini-attention", {.segment = 64}, 1e9);
  add_mixer<infty::InfiniAttention<float>>(trials, "Infini-attention, delta",
                                           {.segment = 64, .delta = true}, 1e9);
  add_mixer<infty::MemSizer<float>>(trials, "MemSizer", {.slots = 8}, 1e30);
  trials.push_back({"MemSizer layer", false, [] {
                      return Layer(infty::MemSizerLayer<float>(
                          {.feed_forward = 32, .norms_in_front = true}, sizes, Random(1)));
                    }});
}

}  // namespace endurance
