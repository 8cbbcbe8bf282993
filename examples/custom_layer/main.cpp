// SPDX-License-Identifier: MIT
// The long-term memory inside a model and a training loop of one's own. A stream of 16 segments
// begins with a message, one of four noisy patterns; noise follows. At the end a learned query asks
// the memory which pattern it was: the message is by then 15 segments and 15 contractions ago.

#include <iostream>
#include <vector>

#include <infty/memory/long_term_memory.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/sampling.hpp>
#include <infty/train/train_step.hpp>

using infty::Index, infty::Tensor, infty::Variable;

constexpr Index batch = 32, length = 16, segments = 16, dim = 16, classes = 4;

struct Recall {
  infty::LongTermMemory<float> memory{
      {.model_dim = dim, .heads = 2, .basis = 16, .widths = {.05, .2}, .samples = 64, .tau = .9},
      infty::Random(1)};
  infty::Embedding<float> query{1, dim, infty::Random(2)};
  infty::Linear<float> answer{dim, classes, infty::Random(3)};

  template <class Visitor>
  void visit(Visitor&& see) {  // this names the parameters, for the optimiser and for checkpoints
    see("memory", memory);
    see("query", query);
    see("answer", answer);
  }

  Variable<float> forward(const Tensor<float>& stream) const {  // [segments, batch, length, dim]
    auto state = memory.make_state(batch);
    for (Index i = 0; i < segments; ++i)
      memory.write(state, stream.slice(i, i + 1).reshape({batch, length, dim}));
    const auto queries = query.forward(Tensor<Index>::zeros({batch, 1}));
    return answer.forward(memory.read(state, queries));  // [batch, 1, classes]
  }
};

int main() {
  Recall model;
  infty::Adam<float> optimizer(model, {.learning_rate = 1e-2});
  infty::Random random(4);
  Tensor<float> patterns({classes, dim}), stream({segments, batch, length, dim});
  fill_normal(patterns, 0, 1, random);

  double right = 0;
  for (int step = 1; step <= 200; ++step) {
    fill_normal(stream, 0, 1, random);
    std::vector<Index> target;
    for (Index row = 0; row < batch; ++row) {
      target.push_back(random.below(classes));
      for (Index i = 0; i < length * dim; ++i)
        stream.data()[row * length * dim + i] += 2 * patterns.data()[target.back() * dim + i % dim];
    }
    Variable<float> logits;
    const auto loss = [&] {
      logits = model.forward(stream);
      return infty::cross_entropy(logits, Tensor<Index>::from({batch, 1}, target));
    };
    train_step(optimizer, {.learning_rate = 1e-2, .max_norm = 1}, loss);

    if (step <= 150) continue;  // accuracy over the last 50 steps, on streams not seen before
    const std::vector<Index> answers = argmax(logits.value()).to_vector();
    for (std::size_t row = 0; row < answers.size(); ++row) right += answers[row] == target[row];
  }
  std::cout << "accuracy " << right / (50 * batch) << ", chance " << 1.0 / classes << '\n';
}
