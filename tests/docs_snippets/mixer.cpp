// SPDX-License-Identifier: MIT
#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/attention_sizes.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/sequence_layer.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using infty::Index, infty::Linear, infty::Random, infty::Shape, infty::Tensor, infty::Variable;

struct ShiftConfig {};  // there is nothing to choose

/// What a token shift remembers: the last vector of every row. A tensor: no gradient flows to it.
template <class T, class B>
struct ShiftState {
  Tensor<T, B> last;  // [batch, 1, d], zeros in a fresh row

  template <class Visitor>
  void visit(Visitor&& see) {
    see("last", last);
  }
};

/// A mixer: y_i = W x_i + b + U x_(i-1), across segments.
template <class T, class B = infty::EigenBackend>
struct TokenShift {
  using Scalar = T;
  using BackendType = B;
  using Config = ShiftConfig;
  using State = ShiftState<T, B>;

  Linear<T, B> here, before;  // W and b, U

  TokenShift(Config, infty::AttentionSizes sizes, Random random)
      : here(sizes.model_dim, sizes.model_dim, random.split(0)),
        before(sizes.model_dim, sizes.model_dim, random.split(1), false) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("here", here);
    see("before", before);
  }

  State make_state(Index batch, Index /*first_row*/ = 0) const {
    infty::require(batch >= 1, "TokenShift", "batch is ", batch, ": it must be >= 1");
    return {Tensor<T, B>::zeros({batch, 1, here.weight.dim(1)})};
  }

  Variable<T, B> forward(State& state, const Variable<T, B>& x, infty::Pass<T, B>& pass) const {
    const Index length = x.dim(1), words = length - pass.behind;  // memory tokens are not held
    infty::require<infty::ShapeError>(state.last.shape() == Shape{x.dim(0), 1, x.dim(2)},
                                      "TokenShift", "x is ", x.shape(), ", the state holds ",
                                      state.last.shape());
    Variable<T, B> y;
    if (pass.answer) {
      const Variable<T, B> shifted = narrow(concat(Variable<T, B>(state.last), x), 0, length);
      y = here.forward(x) + before.forward(shifted);
    }
    state.last = narrow(x, words - 1, words).value();  // last, so that what throws changes nothing
    return y;
  }
};

static_assert(infty::SequenceLayer<TokenShift<float>>);

TEST_CASE("docs: a mixer of one's own keeps what all mixers keep") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<TokenShift<double>>({}, folder / "state");
}

TEST_CASE("docs: a model of one layer of a mixer of one's own sees one token back") {
  const infty::TransformerLM<TokenShift<float>> model(
      {.vocabulary = 5, .model_dim = 8, .layers = 1, .heads = 2, .feed_forward = 16}, {},
      Random(1));
  auto state = model.make_state(1);
  model.observe(state, Tensor<Index>::from({1, 2}, {4, 0}));
  auto other = model.make_state(1);
  model.observe(other, Tensor<Index>::from({1, 2}, {0, 4}));
  const auto tokens = Tensor<Index>::from({1, 3}, {1, 2, 3});
  const auto a = model.logits(model.forward(state, tokens)).value().to_vector();
  const auto b = model.logits(model.forward(other, tokens)).value().to_vector();
  CHECK(std::vector<float>(a.begin(), a.begin() + 5) !=
        std::vector<float>(b.begin(), b.begin() + 5));
  CHECK(std::vector<float>(a.begin() + 5, a.end()) == std::vector<float>(b.begin() + 5, b.end()));
}
