// SPDX-License-Identifier: MIT
// A device that works through a queue stands still while the host waits for it, and the other way
// round: what a step of training waits for is counted here.
#include <vector>

#include <infty/memory/infty_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/train_step.hpp>

#include "support/catch.hpp"
#include "support/queue.hpp"

using infty::Index;

using infty::tests::Queue;

TEST_CASE("train_step: waits once, however the memory samples") {
  for (const auto resampling :
       {infty::Resampling::even, infty::Resampling::sticky, infty::Resampling::sticky_quantiles}) {
    const infty::TransformerLM<infty::InftyMemory<float, Queue>> model(
        {.vocabulary = 5,
         .model_dim = 8,
         .layers = 2,
         .heads = 2,
         .feed_forward = 8,
         .dropout = 0.1},
        {.attention = {.capacity = 4},
         .memory = infty::LongTermConfig{
             .basis = 8, .widths = {.1, .2}, .samples = 12, .resampling = resampling, .bins = 16}});
    auto trained = model;
    infty::Adam<float, Queue> adam(trained);
    infty::Random random(infty::tests::seed);
    auto state = trained.make_state(3);
    const auto tokens = infty::Tensor<Index, Queue>::from(
        {3, 4}, std::vector<Index>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1});
    // Sizes come up for the first time in the first steps, and their ridge matrices with them.
    for (int step = 0; step < 6; ++step) {
      Queue::waits = 0;
      infty::train_step(adam, {.max_norm = 0.1}, [&] {
        infty::Pass<float, Queue> pass{.random = &random};
        const auto hidden = trained.forward(state, tokens, pass);
        return infty::cross_entropy(trained.logits(hidden), tokens) +
               infty::scale(loss_named(pass, "divergence"), 1e-5F);
      });
    }
    CHECK(Queue::waits == 1);
  }
}

TEST_CASE("train_step: waits once with an adaptive embedding and an adaptive softmax") {
  infty::TransformerLM<infty::InftyMemory<float, Queue>> model(
      {.vocabulary = 12,
       .model_dim = 8,
       .layers = 1,
       .heads = 2,
       .feed_forward = 8,
       .cutoffs = {3, 7},
       .div_value = 2},
      {.attention = {.capacity = 4},
       .memory = infty::LongTermConfig{.basis = 8, .widths = {.1, .2}, .samples = 12}});
  infty::Adam<float, Queue> adam(model);
  infty::Random random(infty::tests::seed);
  auto state = model.make_state(2);
  for (int step = 0; step < 9; ++step) {
    // Clusters of every number of rows, none among them.
    std::vector<Index> drawn(8);
    for (Index& token : drawn) token = random.below(step < 6 ? 12 : 5);
    const auto tokens = infty::Tensor<Index, Queue>::from({2, 4}, drawn);
    Queue::waits = 0;
    infty::train_step(adam, {.max_norm = 0.1}, [&] {
      const auto hidden = model.forward(state, tokens);
      return infty::mean_loss(model.losses(hidden, tokens), tokens);
    });
    // Until then ridge matrices are made, for lengths that come up for the first time.
    if (step >= 4) CHECK(Queue::waits == 1);
  }
}
