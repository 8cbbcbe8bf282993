// SPDX-License-Identifier: MIT
#include <utility>
#include <vector>

#include <infty/memory/short_term_memory.hpp>
#include <infty/model/block.hpp>
#include <infty/model/language_model.hpp>
#include <infty/model/layers.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/sequence_layer.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using infty::Index, infty::Random, infty::Tensor, infty::Variable;

template <class InnerState>
struct TwiceState {
  InnerState first, second;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("first", first);
    see("second", second);
  }
};

/// A decorator: any layer, a stack of them say, is run twice, with the same parameters and a state
/// each.
template <class Inner>
  requires infty::SequenceLayer<Inner>
struct Twice {
  using Scalar = typename Inner::Scalar;
  using BackendType = typename Inner::BackendType;
  using State = TwiceState<infty::StateOf<Inner>>;
  using V = Variable<Scalar, BackendType>;

  Inner inner;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
  }

  State make_state(Index batch, Index first_row = 0) const {
    return {infty::make_state(inner, batch, first_row), infty::make_state(inner, batch, first_row)};
  }

  V forward(State& state, const V& x, infty::Pass<Scalar, BackendType>& pass) const {
    State next = state;                                    // so that what throws changes nothing
    const bool answer = std::exchange(pass.answer, true);  // the second run wants the first one's
    const bool answer_before = std::exchange(pass.answer_before, true);
    const V once = run_layer(inner, next.first, x, pass);
    pass.answer = answer;
    pass.answer_before = answer_before;
    const V twice = run_layer(inner, next.second, once, pass);
    state = std::move(next);
    return twice;
  }
};

/// Attention over the last vectors, read twice: a mixer that the kit can make.
struct TwiceAttended : Twice<infty::ShortTermMemory<double>> {
  using Config = infty::ShortTermConfig;
  TwiceAttended(Config config, infty::AttentionSizes sizes, Random random)
      : Twice{infty::ShortTermMemory<double>(config, sizes, random)} {}
};

TEST_CASE("docs: a decorator of one's own keeps what all layers keep") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<TwiceAttended>({.capacity = 3}, folder / "state");
}

TEST_CASE("docs: a model whose stack is run twice has the numbers of two that share weights") {
  using Attention = infty::ShortTermMemory<double>;
  using Stack = infty::Layers<infty::Block<Attention>>;
  const infty::TransformerLM<Attention> like(
      {.vocabulary = 5, .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 16},
      {.capacity = 3}, Random(1));

  infty::LanguageModel model(like.embedding, Twice<Stack>{like.body}, like.head);

  infty::LanguageModel two(like.embedding, infty::Layers<Stack>{{like.body, like.body}}, like.head);
  CHECK(infty::count_parameters(model) == infty::count_parameters(like));
  auto state = model.make_state(1);
  auto of_two = two.make_state(1);
  for (int i = 0; i < 3; ++i) {
    const auto tokens = Tensor<Index>::from({1, 4}, {0, i, 4, 2});
    CHECK(model.forward(state, tokens).value().to_vector() ==
          two.forward(of_two, tokens).value().to_vector());
  }
}
