// SPDX-License-Identifier: MIT
// What stands in a block, a stack, a decorator or a model is told what it lacks.
// clang-format off
// bad 1: Block: the feed has no `forward(state, x, pass) const`, or without a State `forward(x) const`
// bad 2: Block: the feed has no `forward(state, x, pass) const`, or without a State `forward(x) const`
// bad 3: Block: the feed has no public `template <class Visitor> void visit(Visitor&& see)`
// bad 4: Layers: the layer has no `forward(state, x, pass) const`, or without a State `forward(x) const`
// bad 5: Layers: one of the layers has no `forward(state, x, pass) const`, or without a State `forward(x) const`
// bad 6: RecurrentTokens: the inner layer has no `forward(state, x, pass) const`, or without a State `forward(x) const`
// bad 7: LanguageModel: the body has no `forward(state, x, pass) const`, or without a State `forward(x) const`
// bad 8: LanguageModel: the embedding has no `forward(tokens, pass) const`
// bad 9: LanguageModel: the head has no `logits(hidden) const`
// bad 10: LanguageModel: the head has no `losses(hidden, targets) const`
// clang-format on
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/model/block.hpp>
#include <infty/model/language_model.hpp>
#include <infty/model/layers.hpp>
#include <infty/nn/causal_attention.hpp>
#ifndef BAD
#define BAD 0
#endif

using V = infty::Variable<float>;
using Tokens = infty::Tensor<infty::Index>;
using Pass = infty::Pass<float>;

/// A layer that is right, and what it becomes.
struct Mine {
  using Scalar = float;
  using BackendType = infty::EigenBackend;
#if BAD != 3
  template <class Visitor>
  void visit(Visitor&&) {}
#endif
#if BAD == 2
  float forward(const V&) const { return 0; }
#elif BAD == 0 || BAD == 3 || BAD >= 8
  V forward(const V& x) const { return x; }
#endif
};

struct Embedding {
  template <class Visitor>
  void visit(Visitor&&) {}
#if BAD == 8
  V forward(const Tokens&) const { return {}; }
#else
  V forward(const Tokens&, Pass&) const { return {}; }
#endif
};

struct Head {
  template <class Visitor>
  void visit(Visitor&&) {}
#if BAD != 9
  V logits(const V& hidden) const { return hidden; }
#endif
#if BAD != 10
  V losses(const V& hidden, const Tokens&) const { return hidden; }
#endif
};

using Mixer = infty::CausalAttention<float>;
#if BAD <= 3
infty::Block<Mixer, Mine>* block = nullptr;
auto size = sizeof(*block);
#elif BAD == 4
infty::Layers<Mine> stack;
#elif BAD == 5
infty::Layers<Mine, Mine> stack{Mine{}, Mine{}};
#elif BAD == 6
infty::RecurrentTokens<Mine> tokens({}, {.tokens = 2}, 4, infty::Random(1));
#endif
#if BAD == 0 || BAD >= 7
infty::LanguageModel<Embedding, Mine, Head> model({}, {}, {});
#endif
