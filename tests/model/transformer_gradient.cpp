// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include <infty/autograd/elementwise.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Index;
using infty::LongTermConfig;
using infty::Random;
using infty::Shape;
using infty::Tensor;

TEST_CASE("TransformerLM: gradients of all parameters, every combination of memories and norms") {
  infty::TransformerConfig settings{
      .vocabulary = 5, .model_dim = 4, .layers = 2, .heads = 2, .head_dim = 3, .feed_forward = 5};
  infty::InftyConfig memory{.attention = {.capacity = 3},
                            .memory = LongTermConfig{.basis = 4, .widths = {.1, .3}, .samples = 3}};
  settings.pre_norm = GENERATE(false, true);
  bool short_of_rows = false;
  SECTION("both memories, rows of different age") { short_of_rows = true; }
  SECTION("both, the output layer of its own") { settings.tie_embedding = false; }
  SECTION("both, vectors leave one by one") { memory.attention.stride = 1; }
  SECTION("both, sticky") { memory.memory->resampling = infty::Resampling::sticky_quantiles; }
  SECTION("both, moments") { memory.memory->parameters = infty::DensityParameters::moments; }
  SECTION("long-term only") { memory.attention.capacity = 0; }
  SECTION("short-term only") { memory.memory.reset(); }

  Random random(infty::tests::seed);
  infty::TransformerLM<infty::InftyMemory<double>> model(settings, memory, Random(3));
  // Everything away from the zeros and ones that it starts with.
  auto inputs = infty::parameters<double>(model);
  for (auto& p : inputs) {
    const auto shift = infty::tests::uniform_tensor<double>(p.shape(), random, -.3, .3);
    for (Index i = 0; i < p.size(); ++i) p.value().data()[i] += shift.data()[i];
  }
  const auto draw = [&](Index length) {
    Tensor<Index> tokens(Shape{2, length});
    for (Index i = 0; i < tokens.size(); ++i) tokens.data()[i] = random.below(5);
    return tokens;
  };
  auto before = model.make_state(2);
  model.observe(before, draw(7));
  if (short_of_rows) infty::reset_row(before, 1);
  // What leaves now, of both rows, is written in the segment of the loss: its gate is in it.
  model.observe(before, draw(8));
  const auto tokens = draw(3), targets = draw(3);
  const auto loss = [&] {
    auto state = before;
    infty::Pass<double> pass{.regularised = true};
    const auto hidden = model.forward(state, tokens, pass);
    return mean(model.losses(hidden, targets)) + infty::scale(loss_named(pass, "divergence"), 1e-3);
  };
  CHECK(infty::fast_gradient_check(loss, inputs, 1e-6) < 1e-6);
  if (memory.memory) {
    CHECK(before.body.layers[0].mixer.past->leaving.length[0] > 0);
    double gate = 0;
    for (const double g : model.body.layers[0].mixer.memory->gate_weight.grad().to_vector())
      gate = std::max(gate, std::abs(g));
    CHECK(gate > 1e-9);
  }
}
