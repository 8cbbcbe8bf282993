// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>

#include <infty/core/config.hpp>
#include <infty/eigen/register_tile.hpp>

namespace infty::detail {

#if !defined(__CUDACC__)  // whose front end does not know the shuffle

/// One step of the transposition of W vectors in registers: vectors `step` apart exchange every
/// other group of `step` elements.
template <Index step, class V, int... i>
[[gnu::always_inline]] inline void exchange(V& a, V& b, std::integer_sequence<int, i...>) {
  constexpr int W = sizeof...(i);
  const V x = a, y = b;
  a = __builtin_shufflevector(x, y, (i / step % 2 == 0 ? i : i - static_cast<int>(step) + W)...);
  b = __builtin_shufflevector(x, y, (i / step % 2 == 0 ? i + static_cast<int>(step) : i + W)...);
}

template <Index step, class T>
[[gnu::always_inline]] inline void transpose_steps(typename Simd<T>::Vector* rows) {
  constexpr Index W = Simd<T>::width;
  if constexpr (step < W) {
    INFTY_UNROLL(16)
    for (Index i = 0; i < W; ++i)
      if (i / step % 2 == 0)
        exchange<step>(rows[i], rows[i + step],
                       std::make_integer_sequence<int, static_cast<int>(W)>{});
    transpose_steps<2 * step, T>(rows);
  }
}

/// to (W, W) = the transpose of from (W, W).
template <class T>
void transpose_square(const T* from, Index from_stride, T* to, Index to_stride) {
  constexpr Index W = Simd<T>::width;
  typename Simd<T>::Vector square[W];
  INFTY_UNROLL(16)
  for (Index r = 0; r < W; ++r) square[r] = Simd<T>::load(from + r * from_stride);
  transpose_steps<1, T>(square);
  INFTY_UNROLL(16)
  for (Index r = 0; r < W; ++r) Simd<T>::store(to + r * to_stride, square[r]);
}

#endif

/// to (columns, rows) = the transpose of from (rows, columns), both with rows at given distances,
/// by squares that are turned in registers.
template <class T>
void transpose(Index rows, Index columns, const T* from, Index from_stride, T* to,
               Index to_stride) {
  constexpr Index W = Simd<T>::width;
  for (Index i = 0; i < rows; i += W)
    for (Index j = 0; j < columns; j += W) {
      const T* const source = from + i * from_stride + j;
      T* const target = to + j * to_stride + i;
#if !defined(__CUDACC__)
      if (i + W <= rows && j + W <= columns) {
        transpose_square(source, from_stride, target, to_stride);
        continue;
      }
#endif
      for (Index c = 0; c < (std::min)(W, columns - j); ++c)
        for (Index r = 0; r < (std::min)(W, rows - i); ++r)
          target[c * to_stride + r] = source[r * from_stride + c];
    }
}

}  // namespace infty::detail
