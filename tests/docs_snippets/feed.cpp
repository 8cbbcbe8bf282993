// SPDX-License-Identifier: MIT
#include <utility>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/model/block.hpp>
#include <infty/model/language_model.hpp>
#include <infty/model/layers.hpp>
#include <infty/nn/any_layer.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/positioned_embedding.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"

using infty::Index, infty::Random, infty::Shape, infty::Tensor, infty::Variable;

/// A feed: W_3 (silu(W_1 x) ⊙ W_2 x) [Shazeer 2020].
template <class T, class B = infty::EigenBackend>
struct SwiGlu {
  using Scalar = T;
  using BackendType = B;

  infty::Linear<T, B> gate, inner, outer;

  SwiGlu(Index d, Index hidden, Random random)
      : gate(d, hidden, random.split(0), false),
        inner(d, hidden, random.split(1), false),
        outer(hidden, d, random.split(2), false) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("gate", gate);
    see("inner", inner);
    see("outer", outer);
  }

  Variable<T, B> forward(const Variable<T, B>& x) const {
    return outer.forward(silu(gate.forward(x)) * inner.forward(x));
  }
};

/// A feed of two lines, without parameters.
struct Halve {
  void visit(auto&&) {}
  auto forward(const auto& x) const { return x / 2; }
};

static_assert(infty::SequenceLayer<SwiGlu<float>>);
static_assert(infty::SequenceLayer<Halve, float, infty::EigenBackend>);

/// A head that scores by the embedding's own vectors.
template <class T, class B = infty::EigenBackend>
struct TiedHead {
  Variable<T, B> weight;  // [vocabulary, d], a handle

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
  }
  Variable<T, B> logits(const Variable<T, B>& hidden) const { return linear(hidden, weight); }
  Variable<T, B> losses(const Variable<T, B>& hidden, const Tensor<Index, B>& targets) const {
    return token_losses(logits(hidden), targets);
  }
};

TEST_CASE("docs: a model of one's own is composed of layers") {
  using T = double;
  const Index vocabulary = 5, longest = 8, d = 4;
  const infty::AttentionSizes sizes{.model_dim = d, .heads = 2, .head_dim = 2};
  const Random random(1);

  using Plain = infty::Block<infty::CausalAttention<T>, SwiGlu<T>>;
  using Remembering = infty::Block<infty::InftyMemory<T>, Halve>;
  using Body = infty::Layers<Plain, Remembering, infty::LayerNorm<T>>;

  Plain plain{.mixer = infty::CausalAttention<T>({}, sizes, random.split(0)),
              .mixer_norm = infty::LayerNorm<T>(d),
              .feed = SwiGlu<T>(d, 6, random.split(1)),
              .feed_norm = infty::LayerNorm<T>(d)};
  Remembering remembering{
      .mixer = infty::InftyMemory<T>(
          {.attention = {.capacity = 3},
           .memory = infty::LongTermConfig{.basis = 4, .widths = {.2}, .samples = 4}},
          sizes, random.split(2)),
      .mixer_norm = infty::LayerNorm<T>(d),
      .feed = Halve{},
      .feed_norm = infty::LayerNorm<T>(d)};

  infty::PositionedEmbedding<T> embedding(vocabulary, longest, d, random.split(3));
  TiedHead<T> head{embedding.tokens.weight};
  infty::LanguageModel<infty::PositionedEmbedding<T>, Body, TiedHead<T>> model(
      embedding, Body(plain, remembering, infty::LayerNorm<T>(d)), head);

  Random noise(2);
  infty::for_each_parameter(
      model, [&](const std::string&, Variable<T>& p) { fill_uniform(p.value(), -1., 1., noise); });
  auto before = model.make_state(2);
  const auto tokens = Tensor<Index>::from({2, 4}, {0, 1, 2, 3, 4, 3, 2, 1});
  const auto targets = Tensor<Index>::from({2, 4}, {1, 2, 3, 4, 3, 2, 1, 0});
  for (int i = 0; i < 3; ++i) model.observe(before, tokens);
  const auto loss = [&] {
    auto state = before;
    return mean(model.losses(model.forward(state, tokens), targets));
  };
  CHECK(infty::gradient_check(loss, infty::parameters<double>(model)) < 1e-6);
  CHECK(model.logits(model.forward(before, tokens)).shape() == Shape{2, 4, vocabulary});
}

TEST_CASE("docs: layers whose types are chosen while the program runs") {
  using T = double;
  const Index d = 4;
  const infty::AttentionSizes sizes{.model_dim = d, .heads = 2, .head_dim = 2};
  const Random random(1);
  for (const bool gated : {false, true}) {
    using Any = infty::AnyLayer<T>;
    infty::Layers<infty::Block<Any, Any>> body;
    body.layers.push_back({.mixer = infty::CausalAttention<T>({}, sizes, random.split(0)),
                           .mixer_norm = infty::LayerNorm<T>(d),
                           .feed = gated ? Any(SwiGlu<T>(d, 6, random.split(1))) : Any(Halve{}),
                           .feed_norm = infty::LayerNorm<T>(d)});
    CHECK(infty::count_parameters(body) == 4 * (d * d + d) + 2 * 2 * d + (gated ? 3 * d * 6 : 0));
    auto state = body.make_state(1);
    infty::Pass<T> pass;
    const Variable<T> x(Tensor<T>::full({1, 3, d}, 1));
    CHECK(body.forward(state, x, pass).shape() == x.shape());
  }
}
