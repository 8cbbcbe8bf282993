// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include <infty/autograd/elementwise.hpp>
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
  infty::InftyConfig memory{
      .short_term = {.capacity = 3},
      .long_term = LongTermConfig{.basis = 4, .widths = {.1, .3}, .samples = 3}};
  settings.pre_norm = GENERATE(false, true);
  bool short_of_rows = false;
  SECTION("both memories, rows of different age") { short_of_rows = true; }
  SECTION("both, the output layer of its own") { settings.tie_embedding = false; }
  SECTION("both, vectors leave one by one") { memory.short_term.stride = 1; }
  SECTION("both, sticky") { memory.long_term->resampling = infty::Resampling::sticky_quantiles; }
  SECTION("both, moments") { memory.long_term->parameters = infty::DensityParameters::moments; }
  SECTION("long-term only") { memory.short_term.capacity = 0; }
  SECTION("short-term only") { memory.long_term.reset(); }

  Random random(infty::tests::seed);
  infty::TransformerLM<double> model(settings, memory, Random(3));
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
    const auto output = model.forward(state, tokens);
    return mean(model.losses(output.hidden, targets)) +
           infty::scale(model.kl_regulariser(output), 1e-3);
  };
  CHECK(infty::gradient_check(loss, inputs) < 1e-6);
  if (memory.long_term) {
    CHECK(before.layers[0].long_term->leaving.length[0] > 0);
    double gate = 0;
    for (const double g : model.layers[0].memory.long_term->gate_weight.grad().to_vector())
      gate = std::max(gate, std::abs(g));
    CHECK(gate > 1e-9);
  }
}
