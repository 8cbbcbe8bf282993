// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/linear.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using infty::Index, infty::Random, infty::RowCounts, infty::Shape, infty::Tensor, infty::Variable;

struct AverageConfig {
  Index model_dim = 0, heads = 0, head_dim = 0;  // `WithMemory` sets these to the attention's
  double decay = .9;                             // how much of the average stays, a vector
};

template <class T, class B>
struct AverageState {
  Variable<T, B> average;  // [batch, 1, d]; a variable: gradients flow through writes

  template <class Visitor>
  void visit(Visitor&& see) {
    see("average", average);
  }
};

/// A memory: m = decay m + (1 - decay) x, vector by vector; a query reads sigmoid(W q + b) ⊙ m.
template <class T, class B = infty::EigenBackend>
class AverageMemory {
 public:
  using Scalar = T;
  using BackendType = B;
  using Config = AverageConfig;
  using State = AverageState<T, B>;

  AverageMemory(Config config, Random random)
      : config_(config), gate_(config.heads * config.head_dim, config.model_dim, random) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("gate", gate_);
  }

  State make_state(Index batch, Index /*first_row*/ = 0) const {
    return {Variable<T, B>(Tensor<T, B>::zeros({batch, 1, config_.model_dim}))};
  }

  /// x [B, L, d], of which the last counts[row] count: in front of them there are zeros.
  void write(State& state, const Variable<T, B>& x, const RowCounts& counts) const {
    const auto power = [&](Index n) { return std::pow(config_.decay, static_cast<double>(n)); };
    std::vector<T> weights, kept;
    for (Index i = x.dim(1); i-- > 0;)
      weights.push_back(static_cast<T>((1 - config_.decay) * power(i)));
    for (const Index n : counts) kept.push_back(static_cast<T>(power(n)));
    const Variable<T, B> w(Tensor<T, B>::from({1, 1, x.dim(1)}, weights)),
        stays(Tensor<T, B>::from({x.dim(0), 1, 1}, kept));
    state.average = stays * state.average + matmul(w, x);
  }

  /// Queries [B, Q, H D] -> [B, Q, d].
  Variable<T, B> read(const State& state, const Variable<T, B>& queries) const {
    return sigmoid(gate_.forward(queries)) * state.average;
  }

 private:
  Config config_;
  infty::Linear<T, B> gate_;  // H D -> d
};

static_assert(infty::Memory<AverageMemory<float>>);

TEST_CASE("docs: a memory of one's own keeps what all memories keep") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_memory<AverageMemory<double>>({.decay = .8}, folder / "state");
}

TEST_CASE("docs: a memory of one's own remembers the vectors that it was written") {
  const AverageMemory<double> memory({.model_dim = 1, .heads = 1, .head_dim = 1, .decay = .5},
                                     Random(1));
  auto state = memory.make_state(2);
  memory.write(state, Variable<double>(Tensor<double>::from({2, 2, 1}, {4, 8, 0, 8})), {2, 1});
  CHECK(state.average.value().to_vector() == std::vector<double>{5, 4});
  memory.write(state, Variable<double>(Tensor<double>::from({2, 1, 1}, {0, 2})), {0, 1});
  CHECK(state.average.value().to_vector() == std::vector<double>{5, 3});
}

TEST_CASE("docs: a model with a memory of one's own") {
  using Mixer = infty::WithMemory<infty::ShortTermMemory<float>, AverageMemory<float>>;
  const infty::TransformerLM<Mixer> model(
      {.vocabulary = 5, .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 16},
      {.attention = {.capacity = 2}, .memory = AverageConfig{.decay = .8}}, Random(1));
  auto state = model.make_state(2);
  const auto tokens = Tensor<Index>::from({2, 3}, {0, 1, 2, 3, 4, 0});
  for (int i = 0; i < 3; ++i) model.observe(state, tokens);  // only the memory is to see these
  CHECK(model.logits(model.forward(state, tokens)).shape() == Shape{2, 3, 5});
  CHECK(state.body.layers[0].mixer.past->memory.average.value().to_vector() !=
        std::vector<float>(2 * 8, 0));
}
