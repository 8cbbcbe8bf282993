// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/variable.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// What a delta rule is given at every place. H heads ask and are written to; more heads of values,
/// H' = g H, share them, g neighbours each.
template <class T, class Backend = EigenBackend>
struct DeltaRuleInputs {
  using V = Variable<T, Backend>;

  V query;       ///< q, [B, L, H, K]
  V key;         ///< k, [B, L, H, K]
  V value;       ///< v, [B, L, H', D]
  V beta = {};   ///< β, how much of what is wrong is put right, [B, L, H']; empty: nothing is read
  V decay = {};  ///< g, the logarithm of how much stays, <= 0, [B, L, H']; empty: all of it stays
};

/// Constants of a delta rule.
struct DeltaRuleOptions {
  double scale = 0;  ///< of the answers; 0 stands for 1 / sqrt(K)
  /// Places that go through matrix products together; 0: one place after the other. So does a
  /// sequence of no more than a quarter of it, such as a token of generation, and of no more than a
  /// sixteenth while a tape records on a CPU.
  Index chunk = 64;

  /// Checks all constants. @throws infty::ValueError that names the first one out of its range
  void validate() const {
    require_within("DeltaRuleOptions", "scale", scale, 0, largest_constant);
    require_at_least("DeltaRuleOptions", "chunk", chunk, 0);
  }
};

namespace detail {

/// The inputs as kernels see them. A row is a head of values in a row of the batch.
template <class T>
struct DeltaRuleArguments {
  Index batch, length, heads, value_heads, key_dim, value_dim;
  T scale;
  const T *query, *key, *value;
  const T *beta, *decay;  // null where there is none
  const T* state;         // [rows, K, D], what is remembered of the places before

  Index rows() const { return batch * value_heads; }
  /// Which of the places [B, L, H'] is place t of a row.
  INFTY_HOST_DEVICE Index place(Index row, Index t) const {
    return (row / value_heads * length + t) * value_heads + row % value_heads;
  }
  /// Which of the places [B, L, H] has its query and key.
  INFTY_HOST_DEVICE Index shared_place(Index row, Index t) const {
    return (row / value_heads * length + t) * heads + row % value_heads / (value_heads / heads);
  }
};

/// What is the same for one input and the rows of kernels: its width and whether heads share it.
struct DeltaRulePart {
  Index width;
  bool shared;
};

/// to [rows, places, width] = an input [B, L, heads, width] by rows; places behind L are zeros.
template <class B, class T>
void pack(const DeltaRuleArguments<T>& in, DeltaRulePart part, const T* from, Index places, T* to) {
  const Index width = part.width;
  const bool shared = part.shared;
  for_each_span<B>(
      in.rows() * places, width, width, [=] INFTY_HOST_DEVICE(Index i, Index begin, Index end) {
        const Index row = i / places, t = i % places;
        const bool there = t < in.length;
        const Index at = there ? shared ? in.shared_place(row, t) : in.place(row, t) : 0;
        for (Index j = begin; j < end; ++j) to[i * width + j] = there ? from[at * width + j] : T(0);
      });
}

/// to [B, L, heads, width] (+)= from [rows, places, width], summed over the rows that share a head.
template <class B, class T>
void unpack(const DeltaRuleArguments<T>& in, DeltaRulePart part, const T* from, Index places, T* to,
            bool add) {
  const Index width = part.width, heads = part.shared ? in.heads : in.value_heads;
  const Index each = in.value_heads / heads;
  for_each_span<B>(in.batch * in.length * heads, width, each * width,
                   [=] INFTY_HOST_DEVICE(Index i, Index begin, Index end) {
                     const Index head = i % heads, t = i / heads % in.length;
                     const Index row = i / heads / in.length * in.value_heads + head * each;
                     for (Index j = begin; j < end; ++j) {
                       T sum = add ? to[i * width + j] : T(0);
                       for (Index n = 0; n < each; ++n)
                         sum += from[((row + n) * places + t) * width + j];
                       to[i * width + j] = sum;
                     }
                   });
}

/// Adds the gradient of an input, by rows [rows, places, width], to the input's.
template <class B, class T>
void unpack_grad(const DeltaRuleArguments<T>& in, DeltaRulePart part, const Tensor<T, B>& from,
                 const Variable<T, B>& input) {
  if (!input.requires_grad()) return;
  const GradTarget<T> to = input.grad_target();
  unpack<B>(in, part, from.data(), from.size() / (in.rows() * part.width), to.data, to.add);
}

}  // namespace detail

}  // namespace infty
