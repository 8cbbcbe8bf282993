// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/elementwise.hpp>
#include <infty/nn/attention_sizes.hpp>

namespace infty {

// How what attention has read and what a memory has read become one. A merge is a layer made from
// `AttentionSizes`, with `forward(attended, read)`, both [B, L, d], and a `sibling()` for another
// layer of the model.

/// The sum, Z = Z_T + Z_LTM [Martins et al. 2022, Eq. 12].
template <class T, class Backend = EigenBackend>
struct SumMerge {
  using V = Variable<T, Backend>;

  SumMerge() = default;
  explicit SumMerge(const AttentionSizes&) {}

  template <class Visitor>
  void visit(Visitor&&) {}

  /// attended + read. @throws infty::ShapeError unless the shapes are equal
  V forward(const V& attended, const V& read) const { return attended + read; }

  SumMerge sibling() const { return {}; }
};

}  // namespace infty
