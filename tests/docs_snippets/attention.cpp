// SPDX-License-Identifier: MIT
#include <cstddef>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/attended.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/plain_attention.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using infty::Index, infty::Linear, infty::Random, infty::RowCounts, infty::Shape, infty::Tensor,
    infty::Variable;

struct SegmentConfig {};  // there is nothing to choose

/// An attention: causal, within the segment, all of which it lets go.
template <class T, class B = infty::EigenBackend>
struct SegmentAttention {
  using Scalar = T;
  using BackendType = B;
  using Config = SegmentConfig;
  using V = Variable<T, B>;

  Index heads;
  Linear<T, B> query, key, value, out;

  SegmentAttention(Config, infty::AttentionSizes sizes, Random random)
      : heads(sizes.heads),
        query(sizes.model_dim, sizes.heads * sizes.head_dim, random.split(0), false),
        key(sizes.model_dim, sizes.heads * sizes.head_dim, random.split(1), false),
        value(sizes.model_dim, sizes.heads * sizes.head_dim, random.split(2), false),
        out(sizes.heads * sizes.head_dim, sizes.model_dim, random.split(3), false) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    see("out", out);
  }

  /// Of vectors that have been normed, [B, L, d] -> [B, L, H D]: what the memory is asked.
  V queries(const V& x) const { return query.forward(x); }

  /// What `forward` does to norm(x), and what a memory beside it needs.
  infty::Attended<T, B> attend(infty::NoState&, const V& x, const infty::InputNorm<T, B>& norm,
                               infty::Pass<T, B>& pass) const {
    infty::require_causal_tokens("SegmentAttention", pass);
    infty::Attended<T, B> attended;
    if (pass.answer) {
      const V normed = norm(x);
      attended.queries = queries(normed);
      attended.context = out.forward(
          scaled_dot_product_attention(attended.queries, key.forward(normed), value.forward(normed),
                                       {.heads = heads, .causal = true}));
    }
    // What leaves are words as they came: not normed, and without memory tokens.
    const auto words = narrow(x, pass.before, x.dim(1) - pass.behind).value();
    attended.leaving = {words, RowCounts(static_cast<std::size_t>(x.dim(0)), words.dim(1))};
    return attended;
  }

  V forward(const V& x, infty::Pass<T, B>& pass) const {
    infty::NoState none;
    return attend(none, x, {}, pass).context;
  }
};

/// A merge: attention and tanh(g) of the memory, of each coordinate; at first nothing of it.
template <class T, class B = infty::EigenBackend>
struct ScaledMerge {
  Variable<T, B> gate;  // [d]

  explicit ScaledMerge(const infty::AttentionSizes& sizes)
      : gate(Tensor<T, B>::zeros({sizes.model_dim}), true) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("gate", gate);
  }

  Variable<T, B> forward(const Variable<T, B>& attended, const Variable<T, B>& read) const {
    return attended + tanh(gate) * read;
  }
};

static_assert(infty::Attention<SegmentAttention<float>>);

TEST_CASE("docs: attention of one's own, and a merge, keep what all mixers keep with a memory") {
  const infty::tests::TemporaryFolder folder;
  using Mixer = infty::WithMemory<SegmentAttention<double>, infty::LongTermMemory<double>>;
  const infty::LongTermConfig few{.basis = 4, .widths = {.2}, .samples = 4};
  infty::testing::require_mixer<Mixer>({.memory = few}, folder / "state");
  using Scaled = infty::WithMemory<SegmentAttention<double>, infty::LongTermMemory<double>,
                                   ScaledMerge<double>>;
  infty::testing::require_mixer<Scaled>({.memory = few}, folder / "state");
}

TEST_CASE("docs: a model with attention of one's own, which a merge begins without the memory") {
  using Mixer =
      infty::WithMemory<SegmentAttention<float>, infty::LongTermMemory<float>, ScaledMerge<float>>;
  const infty::TransformerLM<Mixer> model(
      {.vocabulary = 5, .model_dim = 8, .layers = 1, .heads = 2, .feed_forward = 16},
      {.memory = infty::LongTermConfig{.basis = 8, .samples = 16}}, Random(1));
  auto state = model.make_state(1);
  const auto tokens = Tensor<Index>::from({1, 3}, {0, 1, 2});
  const auto first = model.forward(state, tokens).value().to_vector();
  CHECK(model.forward(state, tokens).value().to_vector() == first);
  CHECK(state.body.layers[0].mixer.past->memory.written[0] == 3);  // the first segment's

  const auto layer = model.body.layers[0];
  infty::Variable<float> gate = layer.mixer.merge.gate;
  gate.value().fill(1);
  CHECK(model.forward(state, tokens).value().to_vector() != first);
}
