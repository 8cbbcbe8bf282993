// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include <infty/autograd/variable.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/nn/short_convolution.hpp>

namespace infty {

/// Vectors of a chunk that is not full: they wait, and nobody reads of them.
template <class T, class Backend = EigenBackend>
struct TitansWaiting {
  Variable<T, Backend> vectors;  ///< [batch, chunk - 1, d], aligned to the right; a gradient flows
  RowCounts length;              ///< [batch], how many there are

  template <class Visitor>
  void visit(Visitor&& see) {
    see("vectors", vectors);
    see("length", length);
  }
};

/// What a `TitansMemory` has learned: how far the weights of a row's networks are from the first
/// ones, which are parameters. All are variables: gradients flow through segments as far as a tape
/// records.
template <class T, class Backend>
struct TitansState {
  std::vector<Variable<T, Backend>> learned;   ///< [batch, H, in, out] a layer
  std::vector<Variable<T, Backend>> momentum;  ///< the same; none without momentum
  /// `learned` where gradients are taken; none where that is `learned` itself, or zero.
  std::vector<Variable<T, Backend>> base;
  RowCounts since;                    ///< [batch], vectors learned since `base` was renewed
  TitansWaiting<T, Backend> waiting;  ///< what will be learned with the next chunk
  /// With convolutions, the last vectors that were learned, [batch, taps, d], as they came.
  std::optional<ShortConvolutionState<T, Backend>> before = {};
  /// With convolutions, and in a `Titans` alone, the last words' queries, [batch, taps, H D].
  std::optional<ShortConvolutionState<T, Backend>> asked = {};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("learned", learned);
    see("momentum", momentum);
    see("base", base);
    see("since", since);
    see("waiting", waiting);
    see("before", before);
    see("asked", asked);
  }
};

}  // namespace infty
