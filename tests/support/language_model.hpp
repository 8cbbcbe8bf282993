// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/tensor.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/catch.hpp"

namespace infty::tests {

/// Checks that a preset of a language model is valid, and that one of these mixers, the same but
/// for its size, reads tokens.
template <class Mixer, class Experiment>
void check_language_model(Experiment e) {
  CHECK_NOTHROW(e.model.validate());
  CHECK_NOTHROW(e.memory.validate());
  CHECK(e.model.heads * e.model.resolved_head_dim() == e.model.model_dim);
  e.model.vocabulary = 9;  // quicker
  e.model.cutoffs = {};
  e.model.model_dim = 16;
  e.model.head_dim = 2;
  e.model.layers = 2;
  e.model.feed_forward = 8;
  const TransformerLM<Mixer> model(e.model, e.memory);
  auto state = model.make_state(1);
  CHECK(model.forward(state, Tensor<Index>::zeros({1, 3})).shape() == Shape{1, 3, 16});
}

}  // namespace infty::tests
