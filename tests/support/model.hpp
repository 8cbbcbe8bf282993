// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/variable.hpp>
#include <infty/core/random.hpp>

#include "support/tensors.hpp"

namespace infty::tests {

/// The smallest layer: a weight [out, in] and a bias [out] for `linear`.
template <class T, class B = EigenBackend>
struct Affine {
  Variable<T, B> weight, bias;

  Affine(Index in, Index out, Random random)
      : weight(uniform_variable<T, B>({out, in}, random)),
        bias(uniform_variable<T, B>({out}, random)) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
    see("bias", bias);
  }
};

/// Two of them one after the other.
template <class T, class B = EigenBackend>
struct TwoLayers {
  Affine<T, B> first, second;

  TwoLayers(Index in, Index hidden, Index out, Random random)
      : first(in, hidden, random.split(0)), second(hidden, out, random.split(1)) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("first", first);
    see("second", second);
  }
};

}  // namespace infty::tests
