// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/kernel/attention.hpp>
#include <infty/thrust/fixed_divisor.hpp>
#include <infty/thrust/kernels/banded_tiles.hpp>
#include <infty/thrust/tile.hpp>
#include <infty/thrust/tile_product.hpp>

namespace infty::detail {

/// The keys [begin, end) that a row of the batch may see.
struct KeyRange {
  int begin, end;
};

/// What the kernels of attention share. With q' = q + u the score of query i and key j at distance
/// row c = L - 1 - i + j is factor (q'_i · k_j + q'_i · r_c + bias_c), bias_c = (w - u) · r_c.
template <class T>
struct AttentionTiles {
  static constexpr int threads = 256;

  AttentionSize size;
  AttentionInputs<T> in;
  const T* bias;              ///< [distances, H]
  T factor;                   ///< 1 / sqrt(D)
  bool wide;                  ///< all inputs are aligned for `load_four`
  int tile_rows;              ///< queries of a tile
  FixedDivisor dims, pieces;  ///< D, and pieces of four in a row of a tile

  INFTY_HOST_DEVICE int head_dim() const { return static_cast<int>(size.head_dim); }
  INFTY_HOST_DEVICE int count_queries() const { return static_cast<int>(size.queries); }
  INFTY_HOST_DEVICE int count_keys() const { return static_cast<int>(size.keys); }
  INFTY_HOST_DEVICE int count_distances() const { return static_cast<int>(size.distances()); }
  INFTY_HOST_DEVICE int memory() const { return static_cast<int>(size.memory()); }
  INFTY_HOST_DEVICE KeyRange seen(int b) const {
    return {static_cast<int>(in.first_key(size, b)), static_cast<int>(in.end_key(size, b))};
  }
  /// Where the keys end that a query before `last` sees.
  INFTY_HOST_DEVICE int end_key(KeyRange seen, int last) const {
    return memory() + last < seen.end ? memory() + last : seen.end;
  }
  INFTY_HOST_DEVICE int padded_head_dim() const { return round_up_4(size.head_dim); }
  INFTY_HOST_DEVICE int keys() const { return key_tile(tile_rows); }
  INFTY_HOST_DEVICE int leading() const { return tile_leading(size.head_dim); }
  INFTY_HOST_DEVICE int query_tiles() const {
    return (count_queries() + tile_rows - 1) / tile_rows;
  }
  INFTY_HOST_DEVICE int key_tiles() const { return (count_keys() + keys() - 1) / keys(); }

  /// Elements of a tile of n rows of vectors, of the band, and of scores.
  INFTY_HOST_DEVICE Index vectors(int n) const { return Index{n} * leading(); }
  INFTY_HOST_DEVICE Index band() const { return vectors(tile_rows + keys()); }
  INFTY_HOST_DEVICE Index scores() const { return Index{tile_rows} * tile_leading(keys()); }

  /// Head h of `n` rows from `first` on of a matrix [., H D] that begins at `from`.
  INFTY_HOST_DEVICE TileSource<T> source(const T* from, int h, int first, int n, int begin, int end,
                                         T* tile) const {
    return {from + h * size.head_dim,
            size.model(),
            head_dim(),
            wide,
            first,
            begin,
            end,
            n,
            tile,
            pieces};
  }
  INFTY_HOST_DEVICE TileSource<T> queries(int b, int h, int first, T* tile) const {
    TileSource<T> q = source(in.q + b * size.queries * size.model(), h, first, tile_rows, 0,
                             count_queries(), tile);
    q.plus = in.u + h * size.head_dim;
    return q;
  }
  /// Of k or v, rows that are not seen being zeros.
  INFTY_HOST_DEVICE TileSource<T> places(const T* from, int h, int first, int n, KeyRange seen,
                                         T* tile) const {
    return source(from, h, first, n, seen.begin, seen.end, tile);
  }
  /// Of r, zeros behind its last row.
  INFTY_HOST_DEVICE TileSource<T> distances(int h, int first, int n, T* tile) const {
    return source(in.r, h, first, n, 0, count_distances(), tile);
  }
  /// Where row b of k or v begins.
  INFTY_HOST_DEVICE Index of_keys(int b) const { return b * size.keys * size.model(); }

  /// The row of r where the band of the queries from i on and the keys from j on begins.
  INFTY_HOST_DEVICE int first_distance(int i, int j) const {
    return count_queries() - i + j - tile_rows;
  }
  INFTY_HOST_DEVICE bool visible(int i, int j, KeyRange seen) const {
    return i < count_queries() && j >= seen.begin && j < seen.end && j <= memory() + i;
  }
  /// The score of a pair that is visible, at distance row c, from the sum of its two products.
  INFTY_HOST_DEVICE T score(int h, int c, T products) const {
    return factor * (products + bias[Index{c} * size.heads + h]);
  }
  /// The distance row of query i and key j.
  INFTY_HOST_DEVICE int distance(int i, int j) const { return count_queries() - 1 - i + j; }
};

}  // namespace infty::detail
