// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>

#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// What attention makes of a segment, and what a memory beside it needs.
template <class T, class Backend = EigenBackend>
struct Attended {
  Variable<T, Backend> context;      ///< [B, L, d], nothing where the pass wants no answer
  Variable<T, Backend> queries;      ///< [B, L, H D], nothing as well
  RowSequences<T, Backend> leaving;  ///< vectors, not normed, that it does not see any more
};

/// A mixer that a memory may stand beside.
///
/// - `attend(state, x, norm, pass)` does what its `forward` does, and says what it knows.
/// - `queries(x)` projects vectors as attention sees them, [B, L, d] -> [B, L, H D].
template <class A>
concept Attention =
    SequenceLayer<A> && requires(const A& attention, StateOf<A>& state,
                                 const Variable<typename A::Scalar, typename A::BackendType>& x,
                                 const InputNorm<typename A::Scalar, typename A::BackendType>& norm,
                                 Pass<typename A::Scalar, typename A::BackendType>& pass) {
      {
        attention.attend(state, x, norm, pass)
      } -> std::same_as<Attended<typename A::Scalar, typename A::BackendType>>;
      {
        attention.queries(x)
      } -> std::same_as<Variable<typename A::Scalar, typename A::BackendType>>;
    };

}  // namespace infty
