// SPDX-License-Identifier: MIT
#include <infty/memory/infty_memory.hpp>
#include <infty/model/objective.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/sampling.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/train_step.hpp>

#include "support/catch.hpp"

using infty::Index, infty::Tensor;

TEST_CASE("docs: a language model is read, asked and trained") {
  const auto tokens = Tensor<Index>::from({2, 4}, {0, 1, 2, 3, 6, 5, 4, 3});
  const auto targets = Tensor<Index>::from({2, 4}, {1, 2, 3, 4, 5, 4, 3, 2});
  infty::Random dropout(2);

  infty::TransformerLM<infty::InftyMemory<float>> model(
      {.vocabulary = 7, .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 16},
      {.attention = {.capacity = 4}, .memory = infty::LongTermConfig{.basis = 8, .samples = 16}},
      infty::Random(1));
  auto state = model.make_state(2);  // two rows: two texts
  model.observe(state, tokens);      // [2, L], only the memory is to see these
  auto branch = state;
  auto hidden = model.forward(branch, tokens);                    // [2, L, 8], behind those
  const auto next = infty::argmax(model.logits(hidden).value());  // [2, L], likeliest next tokens
  const auto losses = model.losses(hidden, targets);              // [2, L], in nats

  CHECK(next.shape() == infty::Shape{2, 4});
  const double before = mean(losses).value().item();
  const double weight = infty::weight_of_sum(1e-5, 2, 2, 4);
  infty::Adam<float> optimizer(model);
  for (int step = 0; step < 20; ++step) {
    const auto loss = [&] {
      auto segment = state;  // what is remembered in front of the segment
      infty::Pass<float> pass{.random = &dropout};
      hidden = model.forward(segment, tokens, pass);
      return objective(model, hidden, targets, pass, {{"divergence", weight}}).total;
    };
    train_step(optimizer, {.learning_rate = 1e-2}, loss);
  }
  CHECK(mean(model.losses(model.forward(state, tokens), targets)).value().item() < before / 2);
}
