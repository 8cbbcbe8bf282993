// SPDX-License-Identifier: MIT
#pragma once

#include <utility>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// What a `RecurrentTokens` remembers.
template <class InnerState, class T, class Backend>
struct RecurrentTokensState {
  InnerState inner;             ///< of the stack
  Variable<T, Backend> tokens;  ///< [batch, m, d], zeros in a fresh row; a gradient flows to them

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("tokens", tokens);
  }
};

/// A decorator: recurrent memory tokens around any stack [Bulatov et al. 2022]. m vectors ride
/// through all layers in front of the segment, to be read, and m behind it, to be written: what
/// comes out of these is in front of the next segment, with a gradient that flows through as many
/// segments as are recorded. Both begin as learned vectors, to which those in front add what was
/// written.
template <class Inner>
  requires SequenceLayer<Inner>
class RecurrentTokens {
 public:
  using Scalar = typename Inner::Scalar;
  using BackendType = typename Inner::BackendType;
  using V = Variable<Scalar, BackendType>;
  using State = RecurrentTokensState<StateOf<Inner>, Scalar, BackendType>;

  Inner inner;                             ///< the stack that the tokens ride through
  Embedding<Scalar, BackendType> initial;  ///< [m, d]

  /// Puts tokens around a stack; their first vectors are drawn from a standard normal distribution.
  /// @param tokens  m, their number  @param d  width of vectors
  /// @throws infty::ValueError unless both are >= 1
  RecurrentTokens(Inner stack, Index tokens, Index d, Random random)
      : inner(std::move(stack)), initial(tokens, d, random) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("initial", initial);
  }

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index first_row = 0) const {
    require(batch >= 1, "RecurrentTokens::make_state", "batch is ", batch, ": it must be >= 1");
    const Index m = initial.weight.dim(0), d = initial.weight.dim(1);
    return {infty::make_state(inner, batch, first_row),
            V(Tensor<Scalar, BackendType>::zeros(Shape{batch, m, d}))};
  }

  /// [B, L, d] -> [B, L, d], moving the state on.
  /// @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    const Index m = initial.weight.dim(0), d = initial.weight.dim(1), length = x.dim(1);
    const Shape tokens{x.dim(0), m, d};
    require<ShapeError>(state.tokens.shape() == tokens, "RecurrentTokens",
                        "the state's tokens are ", state.tokens.shape(), ": they must be ", tokens);
    const V write = initial.forward(numbers(x.dim(0), m)), read = state.tokens + write;
    State next = state;
    const bool answer = std::exchange(pass.answer, true);
    const bool answer_before = std::exchange(pass.answer_before, false);
    pass.before += m;
    pass.behind += m;
    const V y = run_layer(inner, next.inner, concat(concat(read, x), write), pass);
    pass.before -= m;
    pass.behind -= m;
    pass.answer_before = answer_before;
    pass.answer = answer;
    const Index end = y.dim(1) - m;  // what is in front may have been left out
    next.tokens = narrow(y, end, y.dim(1));
    state = std::move(next);
    return answer ? narrow(y, end - length, end) : V();
  }

 private:
  /// 0, ..., m - 1 in every row.
  static Tensor<Index, BackendType> numbers(Index batch, Index m) {
    std::vector<Index> all;
    for (Index i = 0; i < batch * m; ++i) all.push_back(i % m);
    return Tensor<Index, BackendType>::from(Shape{batch, m}, all);
  }
};

}  // namespace infty
