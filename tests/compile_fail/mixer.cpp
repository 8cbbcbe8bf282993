// SPDX-License-Identifier: MIT
// A mixer that lacks something is told what, by the model that is to be made of it.
// clang-format off
// bad 1: TransformerLM: the mixer has no public `template <class Visitor> void visit(Visitor&& see)`
// bad 2: TransformerLM: the mixer has no `forward(state, x, pass) const`, or without a State `forward(x) const`
// bad 3: TransformerLM: the mixer has no `forward(state, x, pass) const`, or without a State `forward(x) const`
// bad 4: TransformerLM: the mixer has a State and no `State make_state(Index batch, Index first_row) const`
// bad 5: TransformerLM: the mixer has a State that is not copyable, or has no public
// bad 6: TransformerLM: the mixer has no Config, the type of its constants, or cannot be made of
// bad 7: TransformerLM: the mixer has no Config, the type of its constants, or cannot be made of
// bad 8: Scalar
// bad 9: has no `forward(state, x, pass) const`, or without a State `forward(x) const`
// clang-format on
#include <infty/model/transformer_lm.hpp>
#ifndef BAD
#define BAD 0
#endif
#if BAD == 9
#include <infty/testing/memory_invariants.hpp>
#endif

#if BAD == 9
using Number = double;
#else
using Number = float;
#endif
using V = infty::Variable<Number>;

struct State {
  V last;
#if BAD != 5
  template <class Visitor>
  void visit(Visitor&& see) {
    see("last", last);
  }
#endif
};

struct Mine {
#if BAD != 8
  using Scalar = Number;
#endif
  using BackendType = infty::EigenBackend;
#if BAD != 6
  struct Config {};
#else
  struct Settings {};
#endif
  using State = ::State;

#if BAD == 6
  Mine(Settings, infty::AttentionSizes, infty::Random) {}
#elif BAD == 7
  Mine(Config, infty::Index) {}
#else
  Mine(Config, infty::AttentionSizes, infty::Random) {}
#endif
#if BAD != 1
  template <class Visitor>
  void visit(Visitor&&) {}
#endif
#if BAD != 4
  State make_state(infty::Index, infty::Index) const { return {}; }
#endif
#if BAD == 3
  Number forward(State&, const V&, infty::Pass<Number>&) const { return 0; }
#elif BAD == 9
  V forward(State&, const V& x) const { return x; }  // and where is the pass?
#elif BAD != 2
  V forward(State&, const V& x, infty::Pass<Number>&) const { return x; }
#endif
};

#if BAD == 9
void test() { infty::testing::require_mixer<Mine>({}, "file"); }
#else
infty::TransformerLM<Mine> model({.vocabulary = 5});
#endif
