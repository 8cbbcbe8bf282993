// SPDX-License-Identifier: MIT
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

#include <infty/lifelong/learn_stream.hpp>
#include <infty/lifelong/mbpa.hpp>
#include <infty/lifelong/predictor.hpp>
#include <infty/model/blocks.hpp>
#include <infty/nn/positioned_embedding.hpp>
#include <infty/nn/self_attention.hpp>

#include "support/catch.hpp"

using infty::Answers, infty::Example, infty::Index, infty::Learner, infty::LifelongTask,
    infty::Random;

/// Replays as many examples of the memory as it learns, with every batch.
struct Rehearsal {
  template <class L>
  void learn(L& learner, std::span<const Example> batch) {
    std::vector<Example> all(batch.begin(), batch.end());
    const auto places = learner.memory.draw(std::ssize(batch), learner.random);
    for (const Example& old : learner.memory.examples(places)) all.push_back(old);
    learner.train_on(all);
    learner.write(batch);
  }
  template <class L>
  Answers answer(L& learner, std::span<const Example> examples) {
    return learner.model.answers(examples);
  }
};

namespace {

/// Two tasks of two classes: which of two words a text is full of.
std::vector<LifelongTask> two_tasks() {
  Random random(1);
  std::vector<LifelongTask> tasks(2);
  for (Index t = 0; t < 2; ++t)
    for (int i = 0; i < 320; ++i) {
      const Index label = 2 * t + random.below(2);
      Example example{{0}, {label}};  // token 0 stands in front
      for (int word = 0; word < 4; ++word)
        example.tokens.push_back(random.uniform() < .6 ? 1 + label : 5 + random.below(3));
      auto& task = tasks[static_cast<std::size_t>(t)];
      (i < 300 ? task.training : task.test).push_back(example);
    }
  return tasks;
}

}  // namespace

TEST_CASE("docs: a classifier learns two tasks, and a method of one's own is a struct") {
  const std::vector<LifelongTask> tasks = two_tasks();
  const infty::TransformerConfig config{
      .vocabulary = 8, .model_dim = 16, .layers = 1, .heads = 2, .feed_forward = 32};
  infty::Predictor model(
      infty::PositionedEmbedding<float>(8, 5, 16, Random(1), 1),          // words and places
      infty::blocks<infty::SelfAttention<float>>(config, {}, Random(2)),  // any SequenceLayer
      infty::ClassHead<float>(16, 4, Random(3)));
  Learner learner(model, 16, {.adam = {.learning_rate = .01}, .memory = {.capacity = 100}});

  Rehearsal method;
  const infty::AccuracyMatrix known = infty::learn_stream(method, learner, tasks, 8);
  // known.row(1): accuracies of both tasks behind the second; known.mean(), known.forgetting()

  CHECK(known.mean() > .6);  // who knows the second task alone has .5 at most
  infty::Mbpa adapting({.interval = 40, .rate = .2}, {.neighbours = 8, .steps = 5});
  const Answers answers = adapting.answer(learner, std::span(tasks[0].test).first(3));
  CHECK(answers.size() == 3);
}
