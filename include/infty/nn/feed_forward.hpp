// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/elementwise.hpp>
#include <infty/nn/dropout.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

/// The position-wise network of a transformer layer: W2 relu(W1 x + b1) + b2 [Vaswani et al. 2017,
/// Eq. 2], with dropout behind each of the two maps.
template <class T, class Backend>
struct FeedForward {
  Linear<T, Backend> inner, outer;

  FeedForward() = default;

  /// @throws infty::ValueError unless d, hidden >= 1
  FeedForward(Index d, Index hidden, Random random)
      : inner(d, hidden, random.split(0)), outer(hidden, d, random.split(1)) {}

  /// [..., d] -> [..., d]. @throws infty::ShapeError
  Variable<T, Backend> forward(const Variable<T, Backend>& x, double drop, Random& random) const {
    const auto hidden = dropout(relu(inner.forward(x)), drop, random);
    return dropout(outer.forward(hidden), drop, random);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("outer", outer);
  }
};

}  // namespace infty
