// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include <infty/core/bfloat16.hpp>
#include <infty/core/config.hpp>
#include <infty/eigen/gemm.hpp>
#include <infty/eigen/pairs.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/scratch.hpp>
#include <infty/eigen/stairs.hpp>
#include <infty/eigen/tile_registers.hpp>
#include <infty/eigen/transpose.hpp>

// Products of pairs by registers that hold tiles. Every element is summed in the order of k alone,
// 16 pairs at a time, from 0 or from what is added to. A left factor stands as `PairLayout::rows`.
#if defined(INFTY_TILE_REGISTERS)

namespace infty::detail {

/// What is multiplied for a block of C, of two tiles by two at most: so many tiles along k, and
/// behind them one of 16 rows and 32 columns in the place of B's `tail`, if there is one.
struct TileFactors {
  const float* a;
  Index lda;
  const float* b;
  Index ldb, tiles;
  const float* tail = nullptr;
};

/// to (rows, n) = from, rows at given distances.
inline void copy_block(Index rows, Index n, const float* from, Index from_stride, float* to,
                       Index to_stride) {
  using S = Simd<float>;
  for (Index i = 0; i < rows; ++i, from += from_stride, to += to_stride) {
    Index j = 0;
    for (; j + S::width <= n; j += S::width) S::store(to + j, S::load(from + j));
    for (; j < n; ++j) to[j] = from[j];
  }
}

/// Where sums of 16 rows stand.
struct TileSums {
  float* data;
  Index stride;
};

/// C (16 rows, 16 columns) = A B, or += if `add`, of which 16 rows each stand at `c`.
template <int rows, int columns>
[[gnu::noinline]] void multiply_tiles(const TileFactors& x, bool add, const TileSums* c) {
  using R = TileRegisters;
  const auto each_sum = [&](const auto& run) {
    run.template operator()<0, 0>();
    if constexpr (columns > 1) run.template operator()<0, 1>();
    if constexpr (rows > 1) run.template operator()<1, 0>();
    if constexpr (rows > 1 && columns > 1) run.template operator()<1, 1>();
  };
  each_sum([&]<int row, int column>() {
    if (add)
      R::load<R::sum(row, column)>(c[row].data + column * tile_side, c[row].stride);
    else
      R::clear<R::sum(row, column)>();
  });
  const auto step = [&](const float* a, const float* b, Index ldb) {
    R::load<R::left(0)>(a, x.lda);
    R::load<R::right(0)>(b, ldb);
    if constexpr (columns > 1) R::load<R::right(1)>(b + tile_side, ldb);
    if constexpr (rows > 1) R::load<R::left(1)>(a + tile_side * x.lda, x.lda);
    each_sum([]<int row, int column>() { R::add_product<row, column>(); });
  };
  const float *a = x.a, *b = x.b;
  for (Index t = 0; t < x.tiles; ++t, a += tile_side, b += tile_side * x.ldb) step(a, b, x.ldb);
  if (x.tail) step(a, x.tail, strip_width);
  each_sum([&]<int row, int column>() {
    R::store<R::sum(row, column)>(c[row].data + column * tile_side, c[row].stride);
  });
}

/// The same of rows and columns, 32 at most, of which whole tiles of both factors may be read. C is
/// read and written within them.
inline void multiply_block(Index rows, Index columns, const TileFactors& x, bool add, float* c,
                           Index ldc) {
  constexpr Index side = strip_width;
  // Tiles of C that are not whole are summed beside it.
  const Index inside = columns % tile_side == 0 ? rows / tile_side * tile_side : 0;
  float* const outside = c + inside * ldc;
  alignas(64) float beside[side * side];
  if (inside < rows && add) copy_block(rows - inside, columns, outside, ldc, beside, side);
  const auto sums = [&](Index row) {
    return row < inside ? TileSums{c + row * ldc, ldc}
                        : TileSums{beside + (row - inside) * side, side};
  };
  const TileSums to[2] = {sums(0), sums(tile_side)};
  if (rows > tile_side && columns > tile_side)
    multiply_tiles<2, 2>(x, add, to);
  else if (rows > tile_side)
    multiply_tiles<2, 1>(x, add, to);
  else if (columns > tile_side)
    multiply_tiles<1, 2>(x, add, to);
  else
    multiply_tiles<1, 1>(x, add, to);
  if (inside < rows) copy_block(rows - inside, columns, beside, side, outside, ldc);
}

/// C (m, n) = A B, or += if `add`, of k pairs, as `product_in_cache`, which says what B and C have
/// room for.
template <class Part>
void tiles_in_cache(Index m, Index n, Index k, const float* a, Index lda, const float* b, Index ldb,
                    bool add, float* c, Index ldc, const Part& part) {
  constexpr Index side = strip_width;
  const Index whole = k / tile_side * tile_side;
  const TileRegisters registers;
  alignas(64) float tail[tile_side * side] = {};
  for (Index j = 0; j < n; j += side) {
    const Index columns = n - j > tile_side ? side : tile_side;
    for (Index p = whole; p < k; ++p)
      std::copy_n(b + p * ldb + j, columns, tail + (p - whole) * side);
    const IndexRange of = part.rows({j, j + columns}, m);
    for (Index i = of.begin; i < of.end; i += side) {
      const Index rows = (std::min)(side, of.end - i);
      const auto [begin, end] = part.terms({i, i + rows}, {j, j + columns}, k);
      // Terms that the part leaves out are zeros: a tile may begin and end among them.
      const Index first = begin / tile_side, last = (std::min)(whole_tiles(end), whole) / tile_side;
      multiply_block(rows, columns,
                     {a + i * lda + first * tile_side, lda, b + first * tile_side * ldb + j, ldb,
                      (std::max)(last - first, Index{0}), end > whole ? tail : nullptr},
                     add, c + i * ldc + j, ldc);
    }
  }
}

/// c (m, n) = alpha a b + beta c of k pairs, of rows of a and strips of b, `leading` apart. Some
/// columns of b stay in the second cache while 32 rows of a after the other meet them. Both are
/// zeros behind k up to a whole tile, and of a whole tiles of rows are read.
inline void tile_gemm(Index m, Index n, Index k, float alpha, GemmOperand<float> a,
                      GemmOperand<float> b, float beta, float* c, Index ldc) {
  constexpr Index side = strip_width, wide = 8 * side, depth = 512;
  const bool plain = alpha == 1.f && (beta == 0.f || beta == 1.f);
  const Index deepest = std::clamp(whole_tiles(k), tile_side, depth), columns = (std::min)(wide, n);
  const Scratch<float> sums(plain ? 0 : m * columns);
  const TileRegisters registers;
  for (Index j = 0; j < n; j += wide) {
    const Index width = (std::min)(wide, n - j);
    float* const to = plain ? c + j : sums.data();
    const Index ldt = plain ? ldc : columns;
    for (Index first = 0; first == 0 || first < k; first += deepest) {
      const Index tiles = whole_tiles((std::min)(deepest, k - first)) / tile_side;
      for (Index i = 0; i < m; i += side)
        for (Index q = 0; q < width; q += side)
          multiply_block((std::min)(side, m - i), (std::min)(side, width - q),
                         {a.data + i * a.leading + first, a.leading,
                          b.data + (j + q) / side * b.leading + first * side, side, tiles},
                         first > 0 || (plain && beta == 1.f), to + i * ldt + q, ldt);
    }
    if (!plain) scale_into(m, width, alpha, to, ldt, beta, c + j, ldc);
  }
}

/// The tile of pairs that begins at w, a matrix as it is stored, of whose rows `left` elements are
/// left there. Of fewer rows than 16, the last one again.
template <class Stored>
void rows_as_tile(Index rows, Index left, const Stored* w, Index ldw, float* tile) {
  for (Index i = 0; i < tile_side; ++i, tile += tile_side) {
    const Stored* const row = w + (std::min)(i, rows - 1) * ldw;
    Index p = (std::min)(left / 2, tile_side);
    if constexpr (std::is_same_v<Stored, float>) {
      pair_neighbours(p, row, tile, true);
      if (2 * p < left && p < tile_side) {
        tile[p] = rounded_pair(row[2 * p], 0);
        ++p;
      }
    } else {
      std::memcpy(tile, row, static_cast<std::size_t>(p) * sizeof(float));
    }
    std::fill_n(tile + p, tile_side - p, 0.f);
  }
}

/// c (m, n) = alpha a wᵀ + beta c of at most 16 rows, by the sums of `tile_gemm`, for w (n, k) as
/// it is stored, each of whose elements is read once and rounded on the way; stored in bfloat16, k
/// is even. There it is w that is the left factor. Of a 16 rows are read.
template <class Stored>
[[gnu::noinline]] void tile_few_rows(Index m, Index n, Index k, float alpha, GemmOperand<float> a,
                                     const Stored* w, Index ldw, float beta, float* c, Index ldc) {
  constexpr Index side = tile_side, words = 2 * side;
  const Index pairs = (k + 1) / 2, tiles = whole_tiles(pairs) / side;
  const bool plain = alpha == 1.f && (beta == 0.f || beta == 1.f);
  const Scratch<float> turned(tiles * side * side);
  transpose(side, tiles * side, a.data, a.leading, turned.data(), side);
  using R = TileRegisters;
  const TileRegisters registers;
  alignas(64) float sums[side * side], by_row[side * side], weights[side * side];
  for (Index j = 0; j < n; j += side) {
    const Index outputs = (std::min)(side, n - j);
    R::clear<R::sum(0, 0)>();
    if (plain && beta == 1.f) {
      for (Index q = 0; q < side; ++q)
        for (Index r = 0; r < side; ++r)
          sums[q * side + r] = q < outputs && r < m ? c[r * ldc + j + q] : 0.f;
      R::load<R::sum(0, 0)>(sums, side);
    }
    const Stored* const from = w + j * ldw;
    for (Index t = 0; t < tiles; ++t) {
      const Index left = k - t * words;
      if (std::is_same_v<Stored, BFloat16> && left >= words && outputs == side) {
        R::load<R::left(0)>(from + t * words, ldw / 2);
      } else {
        rows_as_tile(outputs, left, from + t * words, ldw, weights);
        R::load<R::left(0)>(weights, side);
      }
      R::load<R::right(0)>(turned.data() + t * side * side, side);
      R::add_product<0, 0>();
      if (j + 2 * side <= n)
        for (Index i = 0; i < side; ++i) {
          const auto* const next =
              reinterpret_cast<const char*>(from + (side + i) * ldw + t * words);
          __builtin_prefetch(next, 0, 2);
          if (sizeof(Stored) == 4) __builtin_prefetch(next + 64, 0, 2);
        }
    }
    R::store<R::sum(0, 0)>(sums, side);
    transpose(side, side, sums, side, by_row, side);
    if (plain)
      copy_block(m, outputs, by_row, side, c + j, ldc);
    else
      scale_into(m, outputs, alpha, by_row, side, beta, c + j, ldc);
  }
}

}  // namespace infty::detail

#endif
