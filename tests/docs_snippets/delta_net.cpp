// SPDX-License-Identifier: MIT
// The code of docs/memories.md on linear attention, DeltaNet and Gated DeltaNet.

#include <infty/memory/gated_delta_net.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/catch.hpp"

TEST_CASE("docs/memories.md: a language model of Gated DeltaNets") {
  const infty::TransformerLM<infty::GatedDeltaNet<float>> model({.vocabulary = 1000,
                                                                 .model_dim = 256,
                                                                 .layers = 4,
                                                                 .heads = 4,
                                                                 .head_dim = 48,
                                                                 .feed_forward = 1024,
                                                                 .pre_norm = true},
                                                                {}, infty::Random(1));

  auto state = model.make_state(1);
  const auto tokens = infty::Tensor<infty::Index>::from({1, 3}, {5, 7, 9});
  model.observe(state, tokens);
  const std::size_t bytes = infty::bytes_of(state);
  model.observe(state, tokens);
  CHECK(infty::bytes_of(state) == bytes);
}
