// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>
#include <infty/thrust/tile_product.hpp>

/// Products of tiles of queries and keys in which each pair also meets the row of its distance: the
/// rows that a tile needs are a band.
namespace infty::detail {

/// Keys that a tile of queries meets at once: half as many, so that a thread's micro-tile of 4 x 2
/// scores meets only five rows of a band.
INFTY_HOST_DEVICE constexpr int key_tile(int rows) { return rows / 2; }

/// take(i, j, x_i · dense_j + x_i · band_z) for i < rows and j < rows / 2, where row z of the band
/// is i + j, or with `Falling` rows - 1 - i + j; `dense` may be left out. Then a barrier.
/// @param x      tile of `rows` rows of k
/// @param dense  tile of rows / 2 rows     @param band  tile of rows + rows / 2 rows
template <bool Falling, bool Dense, class Block, class T, class Take>
INFTY_HOST_DEVICE void banded_scores(Block& block, int rows, int k, const T* x, const T* dense,
                                     const T* band, const Take& take) {
  const int part = rows / 4, leading = tile_leading(k);
  block.each(part * part, [&](int item) {
    const int at_i = item / part, at_j = item % part;  // i = at_i + r part, j = at_j + c part
    const int z = Falling ? part - 1 - at_i + at_j : at_i + at_j;
    T sum[4][2] = {};
    for (int l = 0; l < k; l += 4) {
      Four<T> a[4];
      for (int r = 0; r < 4; ++r) a[r] = load_four(x + (at_i + r * part) * leading + l);
      for (int c = 0; c < (Dense ? 2 : 0); ++c) {
        const Four<T> b = load_four(dense + (at_j + c * part) * leading + l);
        for (int r = 0; r < 4; ++r)
          for (int m = 0; m < 4; ++m) sum[r][c] += a[r].x[m] * b.x[m];
      }
      for (int o = 0; o < 5; ++o) {
        const Four<T> b = load_four(band + (z + o * part) * leading + l);
        for (int c = 0; c < 2; ++c) {
          const int r = Falling ? 3 + c - o : o - c;
          if (r >= 0 && r < 4)
            for (int m = 0; m < 4; ++m) sum[r][c] += a[r].x[m] * b.x[m];
        }
      }
    }
    for (int r = 0; r < 4; ++r)
      for (int c = 0; c < 2; ++c) take(at_i + r * part, at_j + c * part, sum[r][c]);
  });
}

/// to_i += sum over j < rows / 2 of weight(i, j) (dense_j + band_(rows - 1 - i + j)) for i < rows,
/// then a barrier.
/// @param weights  tile of `rows` rows of rows / 2   @param dense, band, to  tiles of width k
template <class Block, class T>
INFTY_HOST_DEVICE void banded_sums(Block& block, int rows, int k, const T* weights, const T* dense,
                                   const T* band, T* to) {
  const int across = round_up_4(k) / 4, leading = tile_leading(k);
  const int keys = key_tile(rows), of_weights = tile_leading(keys);
  block.each(rows / 4 * across, [&](int item) {
    const int i = 4 * (item / across), column = 4 * (item % across);
    Four<T> sum[4] = {};
    for (int j = 0; j < keys; j += 4) {
      Four<T> w[4];
      for (int r = 0; r < 4; ++r) w[r] = load_four(weights + (i + r) * of_weights + j);
      for (int l = 0; l < 4; ++l) {
        const Four<T> b = load_four(dense + (j + l) * leading + column);
        for (int r = 0; r < 4; ++r)
          for (int c = 0; c < 4; ++c) sum[r].x[c] += w[r].x[l] * b.x[c];
      }
      const T* const from = band + (rows - 4 - i + j) * leading + column;
      for (int o = 0; o < 7; ++o) {
        const Four<T> b = load_four(from + o * leading);
        for (int r = 0; r < 4; ++r) {
          const int l = o - 3 + r;
          if (l >= 0 && l < 4)
            for (int c = 0; c < 4; ++c) sum[r].x[c] += w[r].x[l] * b.x[c];
        }
      }
    }
    for (int r = 0; r < 4; ++r) add_four(to + (i + r) * leading + column, sum[r]);
  });
}

}  // namespace infty::detail
