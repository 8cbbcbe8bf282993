// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/config.hpp>

// Products of tiles that lie in cache already, so that nothing is packed: what the fused kernels
// are made of. The accumulators of a small tile of C stay in registers while A and B pass by.
namespace infty::detail {

/// The widest vectors that this program is compiled for.
template <class T>
struct Simd {
#if defined(__AVX512F__)
  static constexpr int bytes = 64, registers = 32;
#elif defined(__AVX__)
  static constexpr int bytes = 32, registers = 16;
#else
  static constexpr int bytes = 16, registers = 16;
#endif
  static constexpr Index width = bytes / static_cast<int>(sizeof(T));
  typedef T Vector __attribute__((vector_size(bytes)));
  typedef T Unaligned __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));

  static Vector load(const T* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void store(T* to, Vector x) { *reinterpret_cast<Unaligned*>(to) = x; }
};

/// A multiple of the vectors' width, at least n: the columns that a tile must have room for.
template <class T>
constexpr Index padded(Index n) {
  return (n + Simd<T>::width - 1) / Simd<T>::width * Simd<T>::width;
}

/// The left operand of a product, element (i, p) at data[i * row + p * column].
template <class T>
struct TileView {
  const T* data;
  Index row, column;
};

/// C (rows, vectors) = or += A (rows, k) B (k, vectors), with C in registers.
template <int rows, int vectors, class T>
void register_tile(Index k, TileView<T> a, const T* b, Index ldb, bool add, T* c, Index ldc) {
  using S = Simd<T>;
  typename S::Vector sum[rows][vectors] = {};
  for (Index p = 0; p < k; ++p) {
    typename S::Vector right[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) right[v] = S::load(b + p * ldb + v * S::width);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const typename S::Vector left = a.data[i * a.row + p * a.column] - typename S::Vector{};
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[i][v] += left * right[v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      T* const to = c + i * ldc + v * S::width;
      S::store(to, add ? S::load(to) + sum[i][v] : sum[i][v]);
    }
}

/// All columns of some rows, and then the rows that are left in ever smaller tiles.
template <int rows, class T>
void tile_rows(Index m, Index n, Index k, TileView<T> a, const T* b, Index ldb, bool add, T* c,
               Index ldc) {
  constexpr Index width = Simd<T>::width;
  for (; m >= rows; m -= rows, a.data += rows * a.row, c += rows * ldc) {
    Index j = 0;
    for (; j + width < n; j += 2 * width) register_tile<rows, 2>(k, a, b + j, ldb, add, c + j, ldc);
    if (j < n) register_tile<rows, 1>(k, a, b + j, ldb, add, c + j, ldc);
  }
  if constexpr (rows > 1) {
    if (m > 0) tile_rows<(rows > 8 ? 8 : rows / 2)>(m, n, k, a, b, ldb, add, c, ldc);
  }
}

/// C (m, n) = A B, or += if `add`, for A (m, k) and B (k, n). B's and C's rows must have room for
/// padded(n) columns: those beyond n are read, and written in C.
template <class T>
void product_in_cache(Index m, Index n, Index k, TileView<T> a, const T* b, Index ldb, bool add,
                      T* c, Index ldc) {
  tile_rows<Simd<T>::registers == 32 ? 14 : 6>(m, n, k, a, b, ldb, add, c, ldc);
}

}  // namespace infty::detail
