// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <infty/core/config.hpp>
#include <infty/thrust/fixed_divisor.hpp>

/// Products of tiles in shared memory. A tile is row-major with rows of `tile_leading(n)` elements
/// and holds a multiple of 4 rows and columns, zeros beyond what it stands for.
namespace infty::detail {

/// n, rounded up to a multiple of 4.
INFTY_HOST_DEVICE constexpr int round_up_4(Index n) { return static_cast<int>((n + 3) / 4 * 4); }

/// Elements between two rows of n: an odd multiple of 4, so that the same four columns of eight
/// rows lie in different banks of shared memory.
INFTY_HOST_DEVICE constexpr int tile_leading(Index n) {
  return round_up_4(n) % 8 == 4 ? round_up_4(n) : round_up_4(n) + 4;
}

/// Four neighbours, which the device loads at once.
template <class T>
struct alignas(16) Four {
  T x[4];
};
template <class T>
INFTY_HOST_DEVICE inline Four<T> load_four(const T* from) {
  return *reinterpret_cast<const Four<T>*>(from);
}
/// Stores them in shared memory at once: left to itself, nvcc does it one by one.
template <class T>
INFTY_HOST_DEVICE inline void store_four(T* to, const Four<T>& four) {
#if defined(__CUDA_ARCH__)
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (sizeof(T) == 4) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(four.x[0]),
                 "f"(four.x[1]), "f"(four.x[2]), "f"(four.x[3])
                 : "memory");
  } else {
    asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(at), "d"(four.x[0]), "d"(four.x[1])
                 : "memory");
    asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(at + 16), "d"(four.x[2]), "d"(four.x[3])
                 : "memory");
  }
#else
  *reinterpret_cast<Four<T>*>(to) = four;
#endif
}

/// to = scale to + four, in shared memory.
template <class T>
INFTY_HOST_DEVICE inline void add_four(T* to, const Four<T>& four, T scale = T(1)) {
  Four<T> sum = load_four(to);
  for (int i = 0; i < 4; ++i) sum.x[i] = scale * sum.x[i] + four.x[i];
  store_four(to, sum);
}

/// A factor A or Bᵀ of a product, (m, k), as a tile with m rows of k.
template <class T>
struct ByRows {
  const T* data;
  int leading;

  /// Which of m rows row r of micro-tile `at` is: neighbours in `at` are neighbours in memory.
  INFTY_HOST_DEVICE static int row(int at, int r, int m) { return at + r * (m / 4); }
  /// x[r].x[i] is the element (row(r), k + i).
  INFTY_HOST_DEVICE void load(int at, int m, int k, Four<T> (&x)[4]) const {
    for (int r = 0; r < 4; ++r) x[r] = load_four(data + row(at, r, m) * leading + k);
  }
  INFTY_HOST_DEVICE static T get(const Four<T> (&x)[4], int r, int i) { return x[r].x[i]; }
  /// Hands out the sums of one row of a micro-tile, this factor being the second one.
  template <class Take>
  INFTY_HOST_DEVICE static void give(int i, int at, int n, const T (&sum)[4], const Take& take) {
    for (int c = 0; c < 4; ++c) take(i, row(at, c, n), sum[c]);
  }
};

/// The same as a tile with k rows of m.
template <class T>
struct ByColumns {
  const T* data;
  int leading;

  INFTY_HOST_DEVICE static int row(int at, int r, int) { return 4 * at + r; }
  INFTY_HOST_DEVICE void load(int at, int, int k, Four<T> (&x)[4]) const {
    for (int i = 0; i < 4; ++i) x[i] = load_four(data + (k + i) * leading + 4 * at);
  }
  INFTY_HOST_DEVICE static T get(const Four<T> (&x)[4], int r, int i) { return x[i].x[r]; }
  template <class Take>
  INFTY_HOST_DEVICE static void give(int i, int at, int, const T (&sum)[4], const Take& take) {
    take(i, 4 * at, Four<T>{sum[0], sum[1], sum[2], sum[3]});
  }
};

/// take(i, j, sum over l < k of a(i, l) b(j, l)) for i < m and j < n, which are multiples of 4 as k
/// is, then a barrier; where b is `ByColumns`, take(i, j, the sums of j, ..., j + 3 as a `Four`).
/// Each item keeps 4 x 4 sums in registers and loads 32 numbers for 64 products.
template <class T, class Block, template <class> class A, template <class> class B, class Take>
INFTY_HOST_DEVICE void tile_product(Block& block, int m, int n, int k, const A<T>& a, const B<T>& b,
                                    const Take& take) {
  const int across = n / 4;
  block.each(m / 4 * across, [&](int item) {
    const int at_m = item / across, at_n = item % across;
    T sum[4][4] = {};
    for (int l = 0; l < k; l += 4) {
      Four<T> x[4], y[4];
      a.load(at_m, m, l, x);
      b.load(at_n, n, l, y);
      for (int i = 0; i < 4; ++i)
        for (int r = 0; r < 4; ++r)
          for (int c = 0; c < 4; ++c) sum[r][c] += a.get(x, r, i) * b.get(y, c, i);
    }
    for (int r = 0; r < 4; ++r) b.give(a.row(at_m, r, m), at_n, n, sum[r], take);
  });
}

/// What stands in a tile of `rows` rows, a multiple of 4: of `columns` columns of a matrix in
/// global memory the rows from `first` on, and zeros for those that do not lie in [begin, end),
/// begin < end.
template <class T>
struct TileSource {
  const T* from;  ///< row 0
  Index stride;   ///< elements between two rows
  int columns;
  bool wide;  ///< whether every row is aligned for `load_four`, and columns is a multiple of 4
  int first, begin, end, rows;
  T* tile;
  FixedDivisor across{round_up_4(columns) / 4};  ///< pieces of four neighbours in a row
  const T* plus = nullptr;                       ///< added to every row that is there, if not null

  /// Parts of the tile, which may be copied in any order.
  INFTY_HOST_DEVICE int items() const { return rows / 4 * across.divisor(); }
  /// Copies one of them: the same four columns of four rows.
  INFTY_HOST_DEVICE void copy(int item) const {
    const int row = across.quotient(item), column = 4 * (item - row * across.divisor());
    const int step = rows / 4, leading = tile_leading(columns);
    // A row that is not there is read where another is: without a branch the device has all loads
    // under way at a time.
    const T* source[4];
    bool inside[4];
    for (int r = 0; r < 4; ++r) {
      const int at = first + row + r * step;
      const int there = at < begin ? begin : at < end ? at : end - 1;
      inside[r] = at == there;
      source[r] = from + Index{there} * stride + column;
    }
    Four<T> four[4];
    if (wide) {
      for (int r = 0; r < 4; ++r) four[r] = load_four(source[r]);
    } else {
      for (int r = 0; r < 4; ++r)
        for (int i = 0; i < 4; ++i) four[r].x[i] = column + i < columns ? source[r][i] : T(0);
    }
    if (plus)
      for (int i = 0; i < 4; ++i) {
        const T x = column + i < columns ? plus[column + i] : T(0);
        for (int r = 0; r < 4; ++r) four[r].x[i] += x;
      }
    for (int r = 0; r < 4; ++r) {
      for (int i = 0; i < 4; ++i) four[r].x[i] = inside[r] ? four[r].x[i] : T(0);
      store_four(tile + (row + r * step) * leading + column, four[r]);
    }
  }
};

/// Whether rows that begin at multiples of `stride` behind `from` are aligned for `load_four`.
template <class T>
bool aligned_for_four(const T* from, Index stride) {
  return reinterpret_cast<std::uintptr_t>(from) % alignof(Four<T>) == 0 && stride % 4 == 0;
}

/// Fills a tile, then a barrier.
template <class Block, class T>
INFTY_HOST_DEVICE void copy_tile(Block& block, const TileSource<T>& a) {
  block.each(a.items(), [&](int item) { a.copy(item); });
}

/// Adds a tile of columns.divisor() columns, row i as row first + i < end, to a matrix in global
/// memory whose row 0 is `to`, then a barrier.
template <class Block, class T>
INFTY_HOST_DEVICE void add_tile(Block& block, const T* tile, int rows, const FixedDivisor& columns,
                                int first, int end, T* to, Index stride) {
  const int leading = tile_leading(columns.divisor());
  block.each(rows * columns.divisor(), [&](int i) {
    const int row = columns.quotient(i), column = i - row * columns.divisor();
    if (first + row < end) to[Index{first + row} * stride + column] += tile[row * leading + column];
  });
}

}  // namespace infty::detail
