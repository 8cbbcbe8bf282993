// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>
#include <infty/thrust/kernels/banded_tiles.hpp>
#include <infty/thrust/tensor_product.hpp>
#include <infty/thrust/tile_product.hpp>

/// How the kernels of attention's backward pass multiply tiles in shared memory.
namespace infty::detail {

/// By the threads of a block, each of which has a micro-tile in registers.
template <class T>
struct ByThreads {
  /// Whether `banded` with `dense` needs a tile to keep the other products in.
  static constexpr bool needs_scratch = false;

  /// take(i, j, x_i · y_j) for i < m and j < n, then a barrier. x and y are tiles of m and n rows
  /// of k, each of them a multiple of 4.
  template <class Block, class Take>
  INFTY_HOST_DEVICE static void products(Block& block, int m, int n, int k, const T* x, const T* y,
                                         const Take& take) {
    const int leading = tile_leading(k);
    tile_product<T>(block, m, n, k, ByRows<T>{x, leading}, ByRows<T>{y, leading}, take);
  }
  /// As `banded_scores`. `scratch` is a tile of `rows` rows of rows / 2 where one is needed, and is
  /// written over; take(i, j, ...) may write the element (i, j) of it.
  template <bool Falling, bool Dense, class Block, class Take>
  INFTY_HOST_DEVICE static void banded(Block& block, int rows, int k, const T* x, const T* dense,
                                       const T* band, T* /*scratch*/, const Take& take) {
    banded_scores<Falling, Dense>(block, rows, k, x, dense, band, take);
  }
  /// to (m, n) += pᵀ x, then a barrier; p is a tile of k rows of m, x one of k rows of n.
  template <class Block>
  INFTY_HOST_DEVICE static void add_transposed(Block& block, int m, int n, int k, const T* p,
                                               const T* x, T* to) {
    const int leading = tile_leading(n);
    tile_product<T>(
        block, m, n, k, ByColumns<T>{p, tile_leading(m)}, ByColumns<T>{x, leading},
        [&](int i, int j, const Four<T>& sums) { add_four(to + i * leading + j, sums); });
  }
  /// As `banded_sums`.
  template <class Block>
  INFTY_HOST_DEVICE static void add_banded(Block& block, int rows, int k, const T* weights,
                                           const T* dense, const T* band, T* to) {
    banded_sums(block, rows, k, weights, dense, band, to);
  }
};

/// The same by the tensor cores of a block's warps, for floats and tiles of a multiple of 16 rows.
/// What a warp computes at a time is 16 rows of 16 to 32 columns. Its 16 queries meet the keys of a
/// tile at 15 distances more than there are keys: of the products with these rows, filled up to 16
/// more, a third is of no use where there are 32 keys. Tiles of 16 keys, of heads wider than
/// 68 where a block has 96 KiB, have less work than it has warps. Heads of 128 have 32 rows there,
/// the least that this can do.
/// @tparam In  what floats are to tensor cores: `InTf32` or `InBfloat16`
template <class In>
struct ByTensorCores {
  static constexpr bool needs_scratch = true;
  static constexpr int unit = 16;

  template <class Block, class Take>
  INFTY_HOST_DEVICE static void products(Block& block, int m, int n, int k, const float* x,
                                         const float* y, const Take& take) {
    const int leading = tile_leading(k);
    each_unit<2>(block, m, n, [&](const auto& warp, int row, int column) {
      const auto sum = product_of_rows<2>(warp, n - column, k, rows_of(x + row * leading, leading),
                                          columns_of(y + column * leading, leading));
      each_sum<2>(warp, n - column, [&](int lane, int at, int i, int j) {
        take(row + i, column + j, sum[lane][at]);
      });
    });
  }

  template <bool Falling, bool Dense, class Block, class Take>
  INFTY_HOST_DEVICE static void banded(Block& block, int rows, int k, const float* x,
                                       const float* dense, const float* band, float* scratch,
                                       const Take& take) {
    const int keys = key_tile(rows), leading = tile_leading(k), of_scores = tile_leading(keys);
    const int distances = keys + unit;
    each_unit<3>(block, rows, distances, [&](const auto& warp, int row, int column) {
      const int first = (Falling ? rows - unit - row : row) + column;
      const auto sum =
          product_of_rows<3>(warp, distances - column, k, rows_of(x + row * leading, leading),
                             columns_of(band + first * leading, leading));
      each_sum<3>(warp, distances - column, [&](int lane, int at, int i, int z) {
        const int j = column + z - (Falling ? unit - 1 - i : i);
        if (j < 0 || j >= keys) return;
        if constexpr (Dense)
          scratch[(row + i) * of_scores + j] = sum[lane][at];
        else
          take(row + i, j, sum[lane][at]);
      });
    });
    if constexpr (Dense)
      products(block, rows, keys, k, x, dense,
               [&](int i, int j, float sum) { take(i, j, sum + scratch[i * of_scores + j]); });
  }

  template <class Block>
  INFTY_HOST_DEVICE static void add_transposed(Block& block, int m, int n, int k, const float* p,
                                               const float* x, float* to) {
    const int of_p = tile_leading(m), leading = tile_leading(n);
    each_unit<2>(block, m, n, [&](const auto& warp, int row, int column) {
      const auto sum = product<2, Order::together>(warp, n - column, k, columns_of(p + row, of_p),
                                                   rows_of(x + column, leading));
      add<2>(warp, n - column, sum, to + row * leading + column, leading);
    });
  }

  template <class Block>
  INFTY_HOST_DEVICE static void add_banded(Block& block, int rows, int k, const float* weights,
                                           const float* dense, const float* band, float* to) {
    const int keys = key_tile(rows), leading = tile_leading(k), of_weights = tile_leading(keys);
    each_unit<4>(block, rows, k, [&](const auto& warp, int row, int column) {
      const float* const w = weights + row * of_weights;
      auto sum = product<4, Order::together>(warp, k - column, keys, rows_of(w, of_weights),
                                             rows_of(dense + column, leading));
      const auto by_distance = [&](int i, int z) {
        const int j = z - (unit - 1 - i);
        return static_cast<unsigned>(j) < static_cast<unsigned>(keys) ? w[i * of_weights + j] : 0.f;
      };
      add_product<4, Order::together>(
          warp, sum, k - column, keys + unit, by_distance,
          rows_of(band + (rows - unit - row) * leading + column, leading));
      add<4>(warp, k - column, sum, to + row * leading + column, leading);
    });
  }

 private:
  template <class Warp, int tiles>
  using Sums = typename Warp::template Lanes<float, 4 * tiles>;

  /// The element (i, j) of a matrix whose rows, or whose columns, stand `leading` apart.
  INFTY_HOST_DEVICE static auto rows_of(const float* x, int leading) {
    return [=](int i, int j) { return x[i * leading + j]; };
  }
  INFTY_HOST_DEVICE static auto columns_of(const float* x, int leading) {
    return [=](int i, int j) { return x[j * leading + i]; };
  }

  /// f(warp, row, column) for all units of 16 rows and `tiles` times 8 columns that (m, n) has.
  template <int tiles, class Block, class F>
  INFTY_HOST_DEVICE static void each_unit(Block& block, int m, int n, const F& f) {
    block.each_warp([&](const typename Block::Warp& warp) {
      const int across = (n + 8 * tiles - 1) / (8 * tiles), units = m / unit * across;
      for (int at = warp.index(); at < units; at += Block::all_warps) {
        const int row = at / across;
        f(warp, row * unit, (at - row * across) * 8 * tiles);
      }
    });
  }

  /// f(lane, register, i, j) for the sums of a unit in columns below n.
  template <int tiles, class Warp, class F>
  INFTY_HOST_DEVICE static void each_sum(const Warp& warp, int n, const F& f) {
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int at = 0; at < 4 * tiles; ++at) {
        const Entry entry = entry_of_sum(lane, at % 4);
        const int column = at / 4 * 8 + entry.column;
        if (column < n) f(lane, at, entry.row, column);
      }
    });
  }
  template <int tiles, class Warp>
  INFTY_HOST_DEVICE static void add(const Warp& warp, int n, const Sums<Warp, tiles>& sum,
                                    float* to, int leading) {
    each_sum<tiles>(warp, n,
                    [&](int lane, int at, int i, int j) { to[i * leading + j] += sum[lane][at]; });
  }

  /// Which of 16 columns of a, and rows of b, a lane has as numbers of which pair, t = lane % 4:
  /// the sums do not mind, but a bank of shared memory has one number for a warp at a time.
  enum class Order {
    apart,    ///< t, t + 4, ...: banks differ where these lie in rows, an odd multiple of 4 apart
    together  ///< 2 t, 2 t + 1, ...: where they lie in columns
  };
  template <Order order>
  INFTY_HOST_DEVICE static int column(int lane, int step, int i) {
    return step * 8 + (order == Order::apart ? lane % 4 + i % 2 * 4 : lane % 4 * 2 + i % 2);
  }

  /// The sums over l < k, a multiple of 16, of a(i, l) b(l, j) of a unit; b is asked for columns
  /// below n alone.
  template <int tiles, Order order, class Warp, class A, class B>
  INFTY_HOST_DEVICE static Sums<Warp, tiles> product(const Warp& warp, int n, int k, const A& a,
                                                     const B& b) {
    Sums<Warp, tiles> sum;
    set_zero<Warp, 4 * tiles>(warp, sum);
    add_product<tiles, order>(warp, sum, n, k, a, b);
    return sum;
  }
  /// The same for any k, of numbers that lie in rows.
  template <int tiles, class Warp, class A, class B>
  INFTY_HOST_DEVICE static Sums<Warp, tiles> product_of_rows(const Warp& warp, int n, int k,
                                                             const A& a, const B& b) {
    const int whole = k / unit * unit;
    Sums<Warp, tiles> sum = product<tiles, Order::apart>(warp, n, whole, a, b);
    if (whole < k) add_part<false, tiles, Order::apart>(warp, sum, n, k, whole, a, b);
    return sum;
  }
  /// The same as `product`, added to what is there.
  template <int tiles, Order order, class Warp, class A, class B>
  INFTY_HOST_DEVICE static void add_product(const Warp& warp, Sums<Warp, tiles>& sum, int n, int k,
                                            const A& a, const B& b) {
    for (int l = 0; l < k; l += unit) add_part<true, tiles, order>(warp, sum, n, k, l, a, b);
  }
  /// The part of it by 16 columns of a from l on, if `whole`, or else by those that there are.
  template <bool whole, int tiles, Order order, class Warp, class A, class B>
  INFTY_HOST_DEVICE static void add_part(const Warp& warp, Sums<Warp, tiles>& sum, int n, int k,
                                         int l, const A& a, const B& b) {
    typename In::template Factor<Warp, 4> left;
    take_pairs(warp, left, [&](int lane, int i) {
      const int at = l + column<order>(lane, i / 4, i);
      return whole || at < k ? a(lane / 4 + i / 2 % 2 * 8, at) : 0.f;
    });
    INFTY_OVER_REGISTERS
    for (int tile = 0; tile < tiles; ++tile) {
      typename In::template Factor<Warp, 2> right;
      take_pairs(warp, right, [&](int lane, int i) {
        // Beyond the last column that one again: nobody asks for its sums.
        const int at = l + column<order>(lane, i / 2, i), j = 8 * tile + lane / 4;
        return whole || at < k ? b(at, j < n ? j : n - 1) : 0.f;
      });
      multiply_add_rounded<In>(warp, sum, 4 * tile, left, right);
    }
  }
};

}  // namespace infty::detail
