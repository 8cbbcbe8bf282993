// SPDX-License-Identifier: MIT
// Memory that the caller has const is enough for all that is only read.
#include <vector>

#include <infty/memory/infty_memory.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/trainer.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEST_CASE("read-only: a memory takes in vectors and answers queries that are const") {
  const std::vector<float> numbers{.1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f, .9f, 1, 0, .1f};
  const auto x = Tensor<float>::wrap(numbers.data(), {1, 3, 4});
  const infty::LongTermMemory<float> memory(
      {.model_dim = 4, .heads = 2, .basis = 8, .widths = {.05, .2}, .samples = 6}, Random(1));
  const Index before = x.version();
  const auto session = [&](const Tensor<float>& vectors) {
    auto state = memory.make_state(1);
    Variable<float> queries(vectors, true);
    infty::Tape tape;
    memory.write(state, vectors);
    memory.write(state, vectors);
    const auto read = memory.read(state, queries);
    tape.backward(infty::sum(read));
    auto all = read.value().to_vector();
    for (const float g : queries.grad().to_vector()) all.push_back(g);
    return all;
  };
  CHECK(session(x) == session(x.clone()));
  CHECK(x.version() == before);
}

TEST_CASE("read-only: a model is trained on tokens that are const, and its weights may be const") {
  const std::vector<Index> numbers{1, 0, 4, 2, 3, 3};
  const auto tokens = Tensor<Index>::wrap(numbers.data(), {2, 3});
  const Index before = tokens.version();
  infty::TransformerLM<infty::InftyMemory<float>> model(
      {.vocabulary = 5, .model_dim = 4, .layers = 2, .heads = 2, .feed_forward = 6},
      {.attention = {.capacity = 4},
       .memory = infty::LongTermConfig{.basis = 8, .widths = {.05, .2}, .samples = 6}},
      Random(1));
  infty::Adam<float> adam(model);
  auto state = model.make_state(2);
  train_step(adam, {},
             [&] { return infty::mean(model.losses(model.forward(state, tokens), tokens)); });
  model.observe(state, tokens, 2);
  CHECK(tokens.version() == before);

  // A table that is mapped into memory, say: it answers, and no optimiser writes it.
  const std::vector<float> table = model.embedding.weights[0].value().to_vector();
  const auto wrapped = Tensor<float>::wrap(table.data(), model.embedding.weights[0].shape());
  model.embedding.weights[0] = model.head.weights[0] = Variable<float>(wrapped, true);
  infty::Adam<float> other(model);
  auto again = model.make_state(2);
  CHECK_NOTHROW(model.forward(again, tokens));
  const auto loss = [&] { return infty::mean(model.losses(model.forward(again, tokens), tokens)); };
  CHECK_THROWS_AS(train_step(other, {}, loss), infty::ValueError);
  CHECK(table == model.embedding.weights[0].value().to_vector());
}
