// SPDX-License-Identifier: MIT
#pragma once

/// What this thread's work may use of a GPU's tensor cores and of its libraries. No CUDA is needed
/// to say so: the host's systems run the same programs.
namespace infty::gpu {

namespace detail {

struct Allowed {
  bool tf32 = false, bf16 = false, attention = false, bias_epilogue = false;
};
inline Allowed& allowed() {
  static thread_local Allowed current;
  return current;
}

}  // namespace detail

/// Whether this thread's matrix products in float may round their factors to TF32 (10 bits of
/// mantissa), which tensor cores multiply several times faster. Off until set.
inline bool allow_tf32() { return detail::allowed().tf32; }
/// Sets whether they may.
inline void set_allow_tf32(bool on) { detail::allowed().tf32 = on; }

/// Whether they may round them to bfloat16 (7 bits of mantissa), of which tensor cores do twice as
/// many at a time; sums are in float. Off until set; where it is on, `allow_tf32` says nothing.
inline bool allow_bf16() { return detail::allowed().bf16; }
/// Sets whether they may.
inline void set_allow_bf16(bool on) { detail::allowed().bf16 = on; }

/// Whether the products of tiles of this thread's `relative_attention` in float, heads of at most
/// 128, are computed by tensor cores, forward and backward: each number as the sum of two in TF32,
/// which is about as exact as float, with `allow_tf32` rounded to one, with `allow_bf16` to
/// bfloat16. Off until set. A training's backward should be as its forward was, whose sums it uses.
inline bool tensor_attention() { return detail::allowed().attention; }
/// Sets whether they are.
inline void set_tensor_attention(bool on) { detail::allowed().attention = on; }

/// Whether cuBLAS adds the bias of this thread's `linear` in float to the sums of its product,
/// before these are written: a pass over the result less. Off until set.
inline bool bias_epilogue() { return detail::allowed().bias_epilogue; }
/// Sets whether it does.
inline void set_bias_epilogue(bool on) { detail::allowed().bias_epilogue = on; }

}  // namespace infty::gpu
