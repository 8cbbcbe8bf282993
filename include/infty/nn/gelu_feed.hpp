// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/activations.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/pass.hpp>

namespace infty {

/// A position-wise network W2 gelu(W1 x + b1) + b2, with dropout behind the first map unless
/// `drop_inner` says otherwise.
template <class T, class Backend = EigenBackend>
struct GeluFeed {
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;

  Linear<T, Backend> inner, outer;              ///< d -> hidden, and hidden -> what comes out
  Approximate approximate = Approximate::none;  ///< of the gelu; GPT-2's is `tanh`
  bool drop_inner = true;  ///< whether what lies between both maps is dropped; not in GPT-2

  GeluFeed() = default;

  /// Makes both maps, with weights drawn as `Linear` draws them.
  /// @param d  width of vectors  @param hidden  width of the inner layer
  /// @param to  width of what comes out; 0: d
  /// @throws infty::ValueError unless d, hidden >= 1
  GeluFeed(Index d, Index hidden, Random random, Index to = 0)
      : inner(d, hidden, random.split(0)), outer(hidden, to > 0 ? to : d, random.split(1)) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("outer", outer);
  }

  /// [..., d] -> [..., d]. @throws infty::ShapeError
  V forward(const V& x, Pass<T, Backend>& pass) const {
    const V hidden = gelu(inner.forward(x), approximate);
    return outer.forward(drop_inner ? pass.dropped(hidden) : hidden);
  }
};

}  // namespace infty
