// SPDX-License-Identifier: MIT
#pragma once

#include <utility>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/needs.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// What a `TokensBehind` remembers: nothing of its own.
template <class InnerState>
struct TokensBehindState {
  InnerState inner;  ///< of the stack

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
  }
};

/// A decorator: the same learned memory tokens behind every segment, through all layers of a stack
/// [Rodkin et al. 2024]. What comes out of them is not carried on: layers of the stack that write,
/// such as `AssociativeLayer`, take it in.
template <class Inner>
class TokensBehind {
  static_assert(Layer<Inner>, "TokensBehind: the inner layer" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Inner>, "TokensBehind: the inner layer" INFTY_NO_STATE);
  static_assert(detail::makes_state<Inner>, "TokensBehind: the inner layer" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Inner>, "TokensBehind: the inner layer" INFTY_NO_FORWARD);

 public:
  using Scalar = typename Inner::Scalar;
  using BackendType = typename Inner::BackendType;
  using V = Variable<Scalar, BackendType>;
  using State = TokensBehindState<StateOf<Inner>>;

  Inner inner;                            ///< the stack that the tokens ride through
  Embedding<Scalar, BackendType> tokens;  ///< [m, d]
  /// The table of places that the words have theirs from, a handle, [longest, d]: tokens have
  /// places, too. Empty where there are none, or no places.
  V places;
  /// Whether the tokens' places are the last m of the table, whatever the segment's length; else
  /// they follow the words'.
  bool last_places = true;

  /// Puts tokens behind the segments of a stack; their first vectors are drawn from a normal
  /// distribution.
  /// @param m  number of tokens  @param d  width of vectors
  /// @throws infty::ValueError unless both are >= 1
  TokensBehind(Inner stack, Index m, Index d, Random random, double deviation = 1)
      : inner(std::move(stack)), tokens((check(m, d), m), d, random, deviation) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("tokens", tokens);
    if (places.size() > 0) see("places", places);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    require_rows("TokensBehind::make_state", batch);
    return {infty::make_state(inner, batch, first_row)};
  }

  /// [B, L, d] -> [B, L, d], moving the state on. @throws infty::ShapeError also where the table
  /// has no places for words and tokens; then the state is as it was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    const Index m = tokens.weight.dim(0), d = tokens.weight.dim(1);
    require<ShapeError>(x.shape().rank() == 3 && x.dim(2) == d, "TokensBehind", "vectors are ",
                        x.shape(), ": they must be [B, L, ", d, "]");
    detail::require_room_for_tokens("TokensBehind", x.dim(1), pass);
    State next = state;
    const V with = concat(x, behind(x.dim(0), x.dim(1)));
    pass.behind += m;
    const V y = run_layer(inner, next.inner, with, pass);
    pass.behind -= m;
    state = std::move(next);
    return pass.answer ? narrow(y, 0, y.dim(1) - m) : V();
  }

 private:
  static void check(Index m, Index d) {
    require(m >= 1 && d >= 1, "TokensBehind", "tokens are ", m, ", d is ", d,
            ": both must be >= 1");
  }

  /// The tokens behind `words` vectors, [B, m, d].
  V behind(Index batch, Index words) const {
    const Index m = tokens.weight.dim(0);
    const V plain = tokens.forward(numbers(batch, m, 0));
    if (places.size() == 0) return plain;
    const Index most = places.dim(0);
    require<ShapeError>(words + m <= most, "TokensBehind", words, " words and ", m,
                        " tokens: there are ", most, " places");
    return plain + embedding(numbers(batch, m, last_places ? most - m : words), places);
  }

  /// first, ..., first + m - 1 in every row.
  static Tensor<Index, BackendType> numbers(Index batch, Index m, Index first) {
    std::vector<Index> all;
    for (Index i = 0; i < batch * m; ++i) all.push_back(first + i % m);
    return Tensor<Index, BackendType>::from(Shape{batch, m}, all);
  }
};

}  // namespace infty
