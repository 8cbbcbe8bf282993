// SPDX-License-Identifier: MIT
// A program of somebody's: the long-term memory by itself, and a training step of a model with it.
#include <cstdio>

#include <infty/memory/infty_memory.hpp>
#include <infty/model/objective.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/train_step.hpp>

int main() {
  infty::LongTermMemory<float> memory({.model_dim = 16, .heads = 2, .basis = 32}, infty::Random(1));
  auto state = memory.make_state(1);
  infty::Random random(2);
  infty::Tensor<float> segment({1, 24, 16}), queries({1, 4, 16});
  fill_normal(queries, 0, 1, random);
  for (int i = 0; i < 3; ++i) {
    fill_normal(segment, 0, 1, random);
    memory.write(state, segment);
  }
  const auto context = memory.read(state, queries);
  for (const float x : context.value().to_vector()) std::printf("%a ", static_cast<double>(x));

  infty::TransformerLM<infty::InftyMemory<float>> model(
      {.vocabulary = 7, .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 16},
      {.attention = {.capacity = 4}, .memory = infty::LongTermConfig{.basis = 8, .samples = 16}},
      infty::Random(1));
  auto past = model.make_state(1);
  const auto tokens = infty::Tensor<infty::Index>::from({1, 6}, {0, 1, 2, 3, 4, 5});
  const auto targets = infty::Tensor<infty::Index>::from({1, 6}, {1, 2, 3, 4, 5, 6});
  infty::Adam<float> adam(model, {.learning_rate = 1e-2});
  for (int i = 0; i < 3; ++i) {
    const auto step = train_step(adam, {.learning_rate = 1e-2}, [&] {
      infty::Pass<float> pass;
      const auto hidden = model.forward(past, tokens, pass);
      return objective(model, hidden, targets, pass, {{"divergence", 1e-3}}).total;
    });
    std::printf("\n%a %a", step.loss, step.grad_norm);
  }
  std::printf("\n");
}
