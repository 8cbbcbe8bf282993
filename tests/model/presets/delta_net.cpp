// SPDX-License-Identifier: MIT
#include <infty/model/presets/delta_net.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/catch.hpp"

namespace delta_net_presets {

/// A model of the preset, but for its size.
template <class Mixer, class Experiment>
infty::Index parameters_of(Experiment e) {
  e.model.validate();
  e.memory.validate();
  e.model.vocabulary = 7;
  e.model.model_dim = 8;
  e.model.layers = 1;
  e.model.heads = 2;
  e.model.head_dim = e.memory.value_dim = 4;
  e.model.feed_forward = 16;
  return infty::count_parameters(infty::TransformerLM<Mixer>(e.model, e.memory));
}

}  // namespace delta_net_presets

TEST_CASE("presets of DeltaNet: valid, of the sizes of their program, and a model can be made") {
  using namespace infty;
  const auto plain = presets::delta_net();
  CHECK(plain.model.heads * plain.model.head_dim == plain.model.model_dim);
  const auto gated = presets::gated_delta_net();
  // The program's own words: H K is 0.75 d.
  CHECK(4 * gated.model.heads * gated.model.head_dim == 3 * gated.model.model_dim);
  CHECK(gated.memory.value_dim == gated.memory.resolved({.head_dim = 256}).value_dim);
  // The gate is 8 by 8; decays have a map of 2 by 8, rates and biases.
  CHECK(delta_net_presets::parameters_of<GatedDeltaNet<float>>(gated) ==
        delta_net_presets::parameters_of<DeltaNet<float>>(plain) + 64 + 16 + 4);
}
