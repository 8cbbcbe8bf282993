// SPDX-License-Identifier: MIT
#pragma once

#include <bit>

#include <infty/core/bfloat16.hpp>
#include <infty/core/config.hpp>
#include <infty/eigen/gemm.hpp>
#include <infty/eigen/rounded_tile.hpp>
#include <infty/eigen/scratch.hpp>

// Products of float matrices whose factors are rounded to bfloat16 and that are summed in float: by
// the tiles of products in full, whose elements here are pairs of two that follow each other in the
// order of k.
namespace infty::detail {

/// Lays the pairs of an operand out, [rows, ⌈k / 2⌉] if k runs along its memory, or else
/// [⌈k / 2⌉, rows]; the partner that an odd k lacks is 0.
inline GemmOperand<float> pairs_of(Index rows, Index k, const float* x, Index leading,
                                   bool along_memory, float* to) {
  const Index pairs = (k + 1) / 2, whole = k / 2;
  const auto pair = [](float a, float b) { return std::bit_cast<float>(bfloat16_pair(a, b)); };
  if (along_memory) {
    for (Index i = 0; i < rows; ++i, x += leading, to += pairs) {
      for (Index p = 0; p < whole; ++p) to[p] = pair(x[2 * p], x[2 * p + 1]);
      if (whole < pairs) to[whole] = pair(x[k - 1], 0);
    }
    return {to - rows * pairs, pairs, false};
  }
  for (Index p = 0; p < whole; ++p, x += 2 * leading, to += rows)
    for (Index i = 0; i < rows; ++i) to[i] = pair(x[i], x[leading + i]);
  if (whole < pairs)
    for (Index i = 0; i < rows; ++i) to[i] = pair(x[i], 0);
  return {to - whole * rows, rows, false};
}

/// c (m, n) = alpha a b + beta c, with the elements of a and b rounded to bfloat16. Every element
/// of c is summed in the order of k alone, as by `dot_pair`; the instruction for it is used if
/// `fast`.
inline void rounded_gemm(Index m, Index n, Index k, float alpha, GemmOperand<float> a,
                         GemmOperand<float> b, float beta, float* c, Index ldc,
                         bool fast = has_dot_instruction()) {
  const Index pairs = (k + 1) / 2;
  const Scratch<float> left(m * pairs), right(n * pairs);
  GemmOperand<float> x = pairs_of(m, k, a.data, a.leading, !a.transposed, left.data());
  GemmOperand<float> y = pairs_of(n, k, b.data, b.leading, b.transposed, right.data());
  x.transposed = a.transposed;
  y.transposed = b.transposed;
  if (fast)
    tiled_gemm<DotTile>(m, n, pairs, alpha, x, y, beta, c, ldc);
  else
    tiled_gemm<SlowDotTile>(m, n, pairs, alpha, x, y, beta, c, ldc);
}

}  // namespace infty::detail
