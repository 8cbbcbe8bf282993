// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>

#include <infty/nn/attended.hpp>

namespace infty {

/// A memory: takes in vectors and answers queries about all that it took in. It is a layer, whose
/// parameters, if any, are found by `visit`; what it remembers is a state that the caller owns.
///
/// - `make_state(batch, first_row)` is a state of fresh rows, as a `SequenceLayer`'s.
/// - `write(state, vectors, counts)` takes in the last counts[row] of every row's vectors
///   [B, L, d], in front of which there are zeros.
/// - `read(state, queries)` answers projected queries [B, Q, H D] -> [B, Q, d].
///   `read(state, queries, pass)`, where there is one, may report losses and what one may look at.
///
/// `WithMemory` puts one beside a layer's attention.
template <class M>
concept Memory =
    Layer<M> && Visitable<typename M::State> && std::copyable<typename M::State> &&
    requires(const M& memory, typename M::State& state, Index n, const RowCounts& counts,
             const Variable<typename M::Scalar, typename M::BackendType>& x) {
      { memory.make_state(n, n) } -> std::same_as<typename M::State>;
      memory.write(state, x, counts);
      {
        memory.read(state, x)
      } -> std::convertible_to<Variable<typename M::Scalar, typename M::BackendType>>;
    };

/// Another layer of the same model: with parameters of its own, drawn from `random`, and with
/// whatever layers of a model share. A layer says what that is by a member of this name; without
/// one, nothing is shared. @param make  makes the layer, for those that share nothing
template <class L, class Make>
L sibling_of(const L& layer, Random random, Make&& make) {
  if constexpr (requires { layer.sibling(random); })
    return layer.sibling(random);
  else
    return make(random);
}

}  // namespace infty
