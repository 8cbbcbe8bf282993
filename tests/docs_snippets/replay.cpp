// SPDX-License-Identifier: MIT
#include <algorithm>
#include <vector>

#include <infty/memory/memformer.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/replay.hpp>
#include <infty/train/train_step.hpp>

#include "support/catch.hpp"

using infty::Index, infty::Tensor;

TEST_CASE("docs: what stood four segments ago is learnt, by gradients through all of them") {
  // A token, three segments of nothing, and the question which it was.
  const Index rows = 4, segments = 5;
  std::vector<Tensor<Index>> tokens, targets;
  for (Index i = 0; i < segments; ++i) {
    tokens.push_back(Tensor<Index>::from({rows, 2}, {0, 0, 0, 0, 0, 0, 0, 0}));
    targets.push_back(Tensor<Index>::full({rows, 2}, infty::ignore_index));
  }
  tokens.front() = Tensor<Index>::from({rows, 2}, {1, 0, 2, 0, 3, 0, 4, 0});
  tokens.back() = Tensor<Index>::full({rows, 2}, 5);
  targets.back() = Tensor<Index>::from({rows, 2}, {1, 1, 2, 2, 3, 3, 4, 4});

  infty::Random dropout(2);
  using Mixer = infty::Memformer<infty::NoMemory<float>, infty::GruSlotWriter<float>>;
  infty::TransformerLM<Mixer> model({.vocabulary = 6,
                                     .model_dim = 16,
                                     .layers = 1,
                                     .heads = 2,
                                     .feed_forward = 16,
                                     .pre_norm = true,
                                     .embedding_deviation = 0},
                                    {.slots = {.slots = 4}}, infty::Random(1));
  infty::Adam<float> optimizer(model);
  double first = 0, last = 0;
  for (int step = 0; step < 150; ++step) {
    const auto segment = [&](Index i, auto& state) {  // segment i's loss; moves the state on
      infty::Pass<float> pass{.random = &dropout};
      const auto at = static_cast<std::size_t>(i);
      const auto hidden = model.forward(state, tokens[at], pass);
      return mean_loss(model.losses(hidden, targets[at]), targets[at]);
    };
    auto state = model.make_state(rows);
    const auto loss = [&] { return replayed_loss(state, segments, segment, {.random = &dropout}); };
    last = train_step(optimizer, {.learning_rate = 5e-3}, loss).loss;
    if (step == 0) first = last;
  }
  CHECK(last < first / 10);
}
