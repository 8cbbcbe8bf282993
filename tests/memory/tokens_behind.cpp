// SPDX-License-Identifier: MIT
#include <utility>
#include <vector>

#include <infty/memory/tokens_behind.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/positioned_embedding.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Pass;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::TokensBehind;
using infty::Variable;
using infty::tests::numbers_of;

namespace tokens_behind_tests {

/// Counts calls a row, answers what came in, and notes what the pass said.
template <class T, class B>
struct Notes {
  using Scalar = T;
  using BackendType = B;
  struct State {
    infty::RowCounts calls;
    template <class Visitor>
    void visit(Visitor&& see) {
      see("calls", calls);
    }
  };
  Variable<T, B>* seen;
  Index* behind;

  template <class Visitor>
  void visit(Visitor&&) {}
  State make_state(Index batch, Index) const {
    return {infty::RowCounts(static_cast<std::size_t>(batch), 0)};
  }
  Variable<T, B> forward(State& state, const Variable<T, B>& x, Pass<T, B>& pass) const {
    for (Index& n : state.calls) ++n;
    *seen = x;
    *behind = pass.behind;
    return pass.answer ? x * T(2) : Variable<T, B>();
  }
};

}  // namespace tokens_behind_tests

TEMPLATE_LIST_TEST_CASE("TokensBehind: the same tokens behind every segment, at their places", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  using Inner = tokens_behind_tests::Notes<T, B>;
  V seen;
  Index told = 0;
  TokensBehind<Inner> tokens(Inner{&seen, &told}, 2, 3, Random(1));
  tokens.tokens.weight.value().copy_from(Tensor<T, B>::from({2, 3}, {1, 2, 3, 4, 5, 6}));
  auto state = tokens.make_state(2);
  const V x(Tensor<T, B>::from({2, 1, 3}, {7, 7, 7, 8, 8, 8}));
  const auto behind = [&] { return narrow(seen, 1, 3).value().to_vector(); };
  Pass<T, B> pass{.behind = 1};
  CHECK(tokens.forward(state, x, pass).value().to_vector() == (x * T(2)).value().to_vector());
  CHECK(told == 3);
  CHECK(pass.behind == 1);
  CHECK(narrow(seen, 0, 1).value().to_vector() == x.value().to_vector());
  CHECK(behind() == std::vector<T>{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});

  tokens.places = V(Tensor<T, B>::from({4, 3}, {0, 0, 0, 10, 10, 10, 20, 20, 20, 30, 30, 30}));
  tokens.forward(state, x, pass);
  CHECK(behind() == std::vector<T>{21, 22, 23, 34, 35, 36, 21, 22, 23, 34, 35, 36});
  tokens.last_places = false;  // those behind the one word
  tokens.forward(state, x, pass);
  CHECK(behind() == std::vector<T>{11, 12, 13, 24, 25, 26, 11, 12, 13, 24, 25, 26});

  Pass<T, B> silent{.answer = false};
  CHECK(tokens.forward(state, x, silent).size() == 0);
  CHECK(state.inner.calls == infty::RowCounts{4, 4});
  // Three words and two tokens have no places.
  CHECK_THROWS_AS(tokens.forward(state, V(Tensor<T, B>::zeros({2, 3, 3})), pass),
                  infty::ShapeError);
  CHECK_THROWS_AS(tokens.forward(state, V(Tensor<T, B>::zeros({2, 1, 4})), pass),
                  infty::ShapeError);
  CHECK(state.inner.calls == infty::RowCounts{4, 4});
  for (const auto& [before, after] : {std::pair{0, -1}, {-1, 0}, {2, 2}, {4, 0}}) {
    Pass<T, B> wrong{.before = before, .behind = after};
    CHECK_THROWS_AS(tokens.forward(state, V(Tensor<T, B>::zeros({2, 1, 3})), wrong),
                    infty::ShapeError);
    CHECK(wrong.behind == after);
  }
  CHECK_THROWS_AS(TokensBehind<Inner>(Inner{&seen, &told}, 0, 3, Random(1)), infty::ValueError);
  CHECK_THROWS_AS(tokens.make_state(0), infty::ValueError);
}

TEST_CASE("TokensBehind: tokens and places learn what the words behind them do not see") {
  // Causal attention: the words see no tokens, so only what is made of the tokens' answers could
  // teach them; the places are shared with the words and learn from these.
  using Attention = infty::CausalAttention<double>;
  TokensBehind<Attention> tokens(
      Attention({}, {.model_dim = 4, .heads = 2, .head_dim = 3}, Random(1)), 2, 4, Random(2));
  infty::PositionedEmbedding<double> embedding(5, 6, 4, Random(3));
  tokens.places = embedding.places.weight;
  const auto ids = Tensor<Index>::from({1, 3}, {1, 4, 0});
  auto state = tokens.make_state(1);
  Pass<double> pass;
  infty::Tape tape;
  const auto y = tokens.forward(state, embedding.forward(ids, pass), pass);
  tape.backward(infty::sum(y * y));
  const auto learned = embedding.places.weight.grad().to_vector();
  for (std::size_t i = 0; i < learned.size(); ++i) CHECK((learned[i] != 0) == (i < 12));
  std::vector<const void*> parameters;
  for_each_parameter(
      tokens, [&](const std::string&, const auto& p) { parameters.push_back(p.identity()); });
  CHECK(parameters.size() == 8 + 1 + 1);
}
