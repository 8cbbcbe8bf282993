// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/backend.hpp>
#include <infty/eigen/linear_algebra.hpp>
#include <infty/eigen/products.hpp>
#include <infty/eigen/rounded_gemm.hpp>

namespace infty::detail {

/// The kernel of `ComposedKeptFactor`: inputs of linear maps rounded to bfloat16, in pairs of two
/// rows, each pair in the bits of a float, as a product with their gradients multiplies them.
struct FusedKeptFactor {
  /// Whether such products round their factors now.
  static bool rounds() { return products() == Products::bfloat16; }

  /// Rounds x (rows, in) to pairs (⌈rows / 2⌉, in).
  static void round(Index rows, Index in, const float* x, float* pairs) {
    lay_out_by_threads(PairLayout::joined, in, rows, x, in, false, pairs);
  }

  /// dW (out, in) = dyᵀ x + beta dW, of dy (rows, out) and the pairs of x.
  static void multiply(Index rows, Index out, Index in, const float* dy, const float* pairs,
                       float beta, float* dw) {
    matmul<float>({.m = out,
                   .n = in,
                   .k = rows,
                   .a = {.leading = out, .transposed = true},
                   .b = {.leading = in},
                   .c = {.leading = in},
                   .roundable = true},
                  1.f, dy, nullptr, beta, dw, pairs);
  }
};

}  // namespace infty::detail
