// SPDX-License-Identifier: MIT
// A memory that lacks something is told what.
// clang-format off
// bad 1: WithMemory: the memory has no public `template <class Visitor> void visit(Visitor&& see)`
// bad 2: WithMemory: the memory has no Scalar and BackendType that are the attention's
// bad 3: WithMemory: the memory has no Config, the type of its constants, or cannot be made of
// bad 4: WithMemory: the memory has no State, or it has a State that is not copyable, or has no public
// bad 5: WithMemory: the memory has a State and no `State make_state(Index batch, Index first_row) const`
// bad 6: WithMemory: the memory has a State and no `State make_state(Index batch, Index first_row) const`
// bad 7: WithMemory: the memory has no `void write(State&, const Variable<Scalar, BackendType>& x
// bad 8: WithMemory: the memory has no `Variable<Scalar, BackendType> read(State&, const
// bad 9: WithMemory: the memory has no `Variable<Scalar, BackendType> read(State&, const
// bad 10: WithMemory: the memory has no `void write(State&, const Variable<Scalar, BackendType>& x
// bad 11: WithMemory: the memory has no `void write(State&, const Variable<Scalar, BackendType>& x
// bad 12: WithMemory: the attention has no `Attended<Scalar, BackendType> attend(state, x, norm, pass)
// clang-format on
#include <infty/memory/no_memory.hpp>
#include <infty/memory/with_memory.hpp>
#ifndef BAD
#define BAD 0
#endif
#if BAD == 11
#include <infty/model/transformer_lm.hpp>
#endif

using V = infty::Variable<float>;

/// A layer, and no attention.
struct Plain {
  using Scalar = float;
  using BackendType = infty::EigenBackend;
  struct Config {};

  Plain(Config, infty::AttentionSizes, infty::Random) {}
  template <class Visitor>
  void visit(Visitor&&) {}
  V forward(const V& x) const { return x; }
};

struct Config {};

struct State {
  V sum;
#if BAD != 4
  template <class Visitor>
  void visit(Visitor&& see) {
    see("sum", sum);
  }
#endif
};

class Mine {
#if BAD != 1
 public:
#endif
  template <class Visitor>
  void visit(Visitor&&) {}

 public:
#if BAD != 2
  using Scalar = float;
  using BackendType = infty::EigenBackend;
#endif
  using Config = ::Config;
  using State = ::State;

#if BAD == 3
  explicit Mine(int) {}
#else
  Mine(Config, infty::Random) {}
#endif
#if BAD == 6
  int make_state(infty::Index, infty::Index) const { return 0; }
#elif BAD != 5
  State make_state(infty::Index batch, infty::Index) const {
    return {V(infty::Tensor<float>::zeros({batch, 1, 4}))};
  }
#endif
#if BAD == 10
  void write(State&, const V&) const {}  // and where are the counts?
#elif BAD != 7 && BAD != 11
  void write(State&, const V&, const infty::RowCounts&) const {}
#endif
#if BAD == 9
  float read(const State&, const V&) const { return 0; }
#elif BAD != 8
  V read(const State&, const V& queries) const { return queries; }
#endif
};

#if BAD == 11
infty::TransformerLM<infty::WithMemory<infty::NoMemory<float>, Mine>> model({});
#elif BAD == 12
infty::WithMemory<Plain, Mine> mixer({}, {});
#else
infty::WithMemory<infty::NoMemory<float>, Mine> mixer({}, {});
#endif
