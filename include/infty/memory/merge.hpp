// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/elementwise.hpp>
#include <infty/nn/attention_sizes.hpp>

namespace infty {

// How what attention has read and what a memory has read become one. A merge is a layer made from
// `AttentionSizes`, with `forward(attended, read)`, both [B, L, d].

/// The sum, Z = Z_T + Z_LTM [Martins et al. 2022, Eq. 12].
template <class T, class Backend = EigenBackend>
struct SumMerge {
  using V = Variable<T, Backend>;

  SumMerge() = default;
  /// Has no parameters, whatever the sizes.
  explicit SumMerge(const AttentionSizes&) {}

  template <class Visitor>
  void visit(Visitor&&) {}

  /// attended + read. @throws infty::ShapeError unless the shapes are equal
  V forward(const V& attended, const V& read) const { return attended + read; }
};

/// attended + sigmoid(g) * (read - attended), with a gate g a coordinate that is learned, 0 at
/// first: half of each.
template <class T, class Backend = EigenBackend>
struct GatedMerge {
  using V = Variable<T, Backend>;

  V gate;  ///< [d]

  GatedMerge() = default;
  /// Makes a gate of zeros for vectors of width `sizes.model_dim`: half of each at first.
  explicit GatedMerge(const AttentionSizes& sizes)
      : gate(Tensor<T, Backend>::zeros(Shape{sizes.model_dim}), true) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("gate", gate);
  }

  /// [B, L, d] twice -> [B, L, d]. @throws infty::ShapeError unless the shapes are equal
  V forward(const V& attended, const V& read) const {
    return attended + sigmoid(gate) * (read - attended);
  }
};

}  // namespace infty
