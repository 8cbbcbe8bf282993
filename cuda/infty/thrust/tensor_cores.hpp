// SPDX-License-Identifier: MIT
#pragma once

/// What this thread's work may use a GPU's tensor cores for. No CUDA is needed to say so: the
/// host's systems run the same programs.
namespace infty::gpu {

namespace detail {

struct TensorCores {
  bool tf32 = false, bf16 = false, attention = false;
};
inline TensorCores& tensor_cores() {
  static thread_local TensorCores current;
  return current;
}

}  // namespace detail

/// Whether this thread's matrix products in float may round their factors to TF32 (10 bits of
/// mantissa), which tensor cores multiply several times faster. Off until set.
inline bool allow_tf32() { return detail::tensor_cores().tf32; }
/// Sets whether they may.
inline void set_allow_tf32(bool on) { detail::tensor_cores().tf32 = on; }

/// Whether they may round them to bfloat16 (7 bits of mantissa), of which tensor cores do twice as
/// many at a time; sums are in float. Off until set; where it is on, `allow_tf32` says nothing.
inline bool allow_bf16() { return detail::tensor_cores().bf16; }
/// Sets whether they may.
inline void set_allow_bf16(bool on) { detail::tensor_cores().bf16 = on; }

/// Whether the products of tiles of this thread's `relative_attention` in float, heads of at most
/// 128, are computed by tensor cores, forward and backward: each number as the sum of two in TF32,
/// which is about as exact as float, with `allow_tf32` rounded to one, with `allow_bf16` to
/// bfloat16. Off until set. A training's backward should be as its forward was, whose sums it uses.
inline bool tensor_attention() { return detail::tensor_cores().attention; }
/// Sets whether they are.
inline void set_tensor_attention(bool on) { detail::tensor_cores().attention = on; }

}  // namespace infty::gpu
