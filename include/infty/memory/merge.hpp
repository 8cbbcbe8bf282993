// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/elementwise.hpp>
#include <infty/nn/attention_sizes.hpp>
#include <infty/nn/pass.hpp>

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
  V forward(const V& attended, const V& read) const {
    detail::require_same_shape("SumMerge", attended, read);
    return attended + read;
  }
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
    detail::require_same_shape("GatedMerge", attended, read);
    return attended + sigmoid(gate) * (read - attended);
  }
};

namespace detail {

/// Shows a traced pass the share of the memory in what words have read, |read| / (|attended| +
/// |read|), "memory_share" [B, L]; half where both are 0.
/// @param attended, read  [B, N, d] and [B, M, d], that end at the same vector
/// @param length          of the segment; vectors in front may have been left out
template <class T, class B>
void show_share(const Variable<T, B>& attended, const Variable<T, B>& read, Index length,
                Pass<T, B>& pass) {
  if (!pass.traced) return;
  const Index words = length - pass.before - pass.behind, d = read.dim(2), batch = read.dim(0);
  const Index N = attended.dim(1), M = read.dim(1), end = words + pass.behind;
  Tensor<T, B> share(Shape{batch, words});
  const T *const a = attended.value().data(), *const b = read.value().data();
  T* const to = share.data();
  B::for_each_row(batch * words, 2 * d, [=] INFTY_HOST_DEVICE(Index i) {
    const T* const x = a + (i / words * N + N - end + i % words) * d;
    const T* const y = b + (i / words * M + M - end + i % words) * d;
    T by_attention = T(0), by_memory = T(0);
    for (Index j = 0; j < d; ++j) {
      by_attention += x[j] * x[j];
      by_memory += y[j] * y[j];
    }
    const T m = std::sqrt(by_memory), sum = m + std::sqrt(by_attention);
    to[i] = sum > T(0) ? m / sum : T(0.5);
  });
  pass.show("memory_share", Variable<T, B>(share), "row word");
}

}  // namespace detail

}  // namespace infty
