// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <infty/autograd/linear.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/math.hpp>
#include <infty/core/tensor.hpp>
#include <infty/nn/attention.hpp>
#include <infty/thrust/tile.hpp>
#include <infty/thrust/tile_product.hpp>

namespace infty {

template <class System>
struct ThrustBackend;

namespace detail {

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

/// What the kernels of attention share. With q' = q + u the score of query i and key j at distance
/// row c = L - 1 - i + j is factor (q'_i · k_j + q'_i · r_c + bias_c), bias_c = (w - u) · r_c.
template <class T>
struct AttentionTiles {
  static constexpr int threads = 256;

  AttentionSize size;
  AttentionInputs<T> in;
  const T* bias;  ///< [K, H]
  T factor;       ///< 1 / sqrt(D)
  bool wide;      ///< all inputs are aligned for `load_four`
  int tile_rows;  ///< queries of a tile

  INFTY_HOST_DEVICE int head_dim() const { return static_cast<int>(size.head_dim); }
  INFTY_HOST_DEVICE int count_queries() const { return static_cast<int>(size.queries); }
  INFTY_HOST_DEVICE int count_keys() const { return static_cast<int>(size.keys); }
  INFTY_HOST_DEVICE int memory() const { return static_cast<int>(size.memory()); }
  INFTY_HOST_DEVICE int first_key(int b) const { return static_cast<int>(in.first_key(size, b)); }
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
    return {from + h * size.head_dim, size.model(), head_dim(), wide, first, begin, end, n, tile};
  }
  INFTY_HOST_DEVICE TileSource<T> queries(int b, int h, int first, T* tile) const {
    TileSource<T> q = source(in.q + b * size.queries * size.model(), h, first, tile_rows, 0,
                             count_queries(), tile);
    q.plus = in.u + h * size.head_dim;
    return q;
  }
  /// Of k, v or r, rows beyond [begin, K) being zeros.
  INFTY_HOST_DEVICE TileSource<T> places(const T* from, int h, int first, int n, int begin,
                                         T* tile) const {
    return source(from, h, first, n, begin, count_keys(), tile);
  }
  /// Where row b of k or v begins.
  INFTY_HOST_DEVICE Index of_keys(int b) const { return b * size.keys * size.model(); }

  /// The row of r where the band of the queries from i on and the keys from j on begins.
  INFTY_HOST_DEVICE int first_distance(int i, int j) const {
    return count_queries() - i + j - tile_rows;
  }
  INFTY_HOST_DEVICE bool visible(int i, int j, int begin) const {
    return i < count_queries() && j >= begin && j <= memory() + i;
  }
  /// The score of a pair that is visible, at distance row c, from the sum of its two products.
  INFTY_HOST_DEVICE T score(int h, int c, T products) const {
    return factor * (products + bias[Index{c} * size.heads + h]);
  }
  /// The distance row of query i and key j.
  INFTY_HOST_DEVICE int distance(int i, int j) const { return count_queries() - 1 - i + j; }
};

/// y and log_sum of a tile of queries, by one pass over the keys: sums are kept relative to the
/// largest score so far and scaled when it grows   [Dao et al. 2022, "FlashAttention", alg. 1].
template <class T>
struct AttentionForward : AttentionTiles<T> {
  T *y, *log_sum;

  Index blocks() const { return this->size.batch * this->size.heads * this->query_tiles(); }
  std::size_t shared_bytes() const {
    return 2 * detail::shared_bytes<T>(this->vectors(this->tile_rows)) +
           detail::shared_bytes<T>(this->vectors(this->keys())) +
           detail::shared_bytes<T>(this->band()) + detail::shared_bytes<T>(this->scores()) +
           3 * detail::shared_bytes<T>(this->tile_rows);
  }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const AttentionSize& s = this->size;
    const int rows = this->tile_rows, keys = this->keys(), leading = this->leading();
    const int width = this->padded_head_dim(), of_scores = tile_leading(keys);
    // Late queries see more keys: their blocks start first.
    const int tiles = this->query_tiles();
    const int tile = tiles - 1 - static_cast<int>(block.index() % tiles);
    const Index row = block.index() / this->query_tiles();
    const int h = static_cast<int>(row % s.heads), b = static_cast<int>(row / s.heads);
    const int first = tile * rows, begin = this->first_key(b);
    const int last = first + rows < this->count_queries() ? first + rows : this->count_queries();
    T* const q = block.template shared<T>(this->vectors(rows));
    T* const out = block.template shared<T>(this->vectors(rows));
    T* const kv = block.template shared<T>(this->vectors(keys));
    T* const band = block.template shared<T>(this->band());
    T* const p = block.template shared<T>(this->scores());
    T* const top = block.template shared<T>(rows);
    T* const sum = block.template shared<T>(rows);
    T* const scale = block.template shared<T>(rows);
    constexpr T none = -std::numeric_limits<T>::infinity();

    copy_tile(block, this->queries(b, h, first, q));
    block.each(rows * leading, [&](int i) { out[i] = T(0); });
    block.each(rows, [&](int i) {
      top[i] = none;
      sum[i] = T(0);
    });
    for (int key = begin / keys * keys; key < this->memory() + last; key += keys) {
      copy_tile(block, this->places(this->in.k + this->of_keys(b), h, key, keys, begin, kv));
      copy_tile(block, this->places(this->in.r, h, this->first_distance(first, key), rows + keys, 0,
                                    band));
      banded_scores<true, true>(block, rows, width, q, kv, band, [&](int i, int j, T products) {
        p[i * of_scores + j] = this->visible(first + i, key + j, begin)
                                   ? this->score(h, this->distance(first + i, key + j), products)
                                   : none;
      });
      copy_tile(block, this->places(this->in.v + this->of_keys(b), h, key, keys, begin, kv));
      block.template fold_rows<T>(
          rows, keys, Larger{}, [&](int i, int j) { return p[i * of_scores + j]; },
          [&](int i, T largest) {
            const T before = top[i];
            const T after = before > largest ? before : largest;
            scale[i] = before == after ? T(1) : math::exp(before - after);
            top[i] = after;
          });
      block.template fold_rows<T>(
          rows, keys, Plus{},
          [&](int i, int j) {
            T& x = p[i * of_scores + j];
            return x = x == none ? T(0) : math::exp(x - top[i]);
          },
          [&](int i, T total) { sum[i] = sum[i] * scale[i] + total; });
      tile_product<T>(block, rows, width, keys, ByRows<T>{p, of_scores}, ByColumns<T>{kv, leading},
                      [&](int i, int d, const Four<T>& value) {
                        add_four(out + i * leading + d, value, scale[i]);
                      });
    }
    const Index e = s.model();
    block.each(rows * this->head_dim(), [&](int item) {
      const int i = item / this->head_dim(), d = item % this->head_dim();
      if (first + i < last)
        y[(b * s.queries + first + i) * e + h * s.head_dim + d] = out[i * leading + d] / sum[i];
    });
    block.each(rows, [&](int i) {
      if (first + i < last)
        log_sum[(b * s.queries + first + i) * s.heads + h] = top[i] + std::log(sum[i]);
    });
  }
};

/// What the kernels of the backward pass share.
template <class T>
struct AttentionBackward : AttentionTiles<T> {
  const T *log_sum, *delta;  ///< [B, L, H], delta = d_out · y
  const T* d_out;            ///< [B, L, H D]
  AttentionGradients<T> to;

  INFTY_HOST_DEVICE TileSource<T> output_gradient(int b, int h, int first, T* tile) const {
    return this->source(d_out + b * this->size.queries * this->size.model(), h, first,
                        this->tile_rows, 0, this->count_queries(), tile);
  }
  /// log_sum and delta of the queries from `first` on.
  template <class Block>
  INFTY_HOST_DEVICE void copy_row_sums(Block& block, int b, int h, int first, T* log_sums,
                                       T* deltas) const {
    const AttentionSize& s = this->size;
    block.each(this->tile_rows, [&](int i) {
      const Index at = (b * s.queries + first + i) * s.heads + h;
      log_sums[i] = first + i < s.queries ? log_sum[at] : T(0);
      deltas[i] = first + i < s.queries ? delta[at] : T(0);
    });
  }
};

/// dq of a tile of queries.
template <class T>
struct AttentionQueryGradient : AttentionBackward<T> {
  Index blocks() const { return this->size.batch * this->size.heads * this->query_tiles(); }
  std::size_t shared_bytes() const {
    return 3 * detail::shared_bytes<T>(this->vectors(this->tile_rows)) +
           detail::shared_bytes<T>(this->vectors(this->keys())) +
           detail::shared_bytes<T>(this->band()) + detail::shared_bytes<T>(this->scores()) +
           2 * detail::shared_bytes<T>(this->tile_rows);
  }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const AttentionSize& s = this->size;
    const int rows = this->tile_rows, keys = this->keys(), leading = this->leading();
    const int width = this->padded_head_dim(), of_scores = tile_leading(keys);
    // Late queries see more keys: their blocks start first.
    const int tiles = this->query_tiles();
    const int tile = tiles - 1 - static_cast<int>(block.index() % tiles);
    const Index row = block.index() / this->query_tiles();
    const int h = static_cast<int>(row % s.heads), b = static_cast<int>(row / s.heads);
    const int first = tile * rows, begin = this->first_key(b);
    const int last = first + rows < this->count_queries() ? first + rows : this->count_queries();
    T* const q = block.template shared<T>(this->vectors(rows));
    T* const dy = block.template shared<T>(this->vectors(rows));
    T* const dq = block.template shared<T>(this->vectors(rows));
    T* const kv = block.template shared<T>(this->vectors(keys));
    T* const band = block.template shared<T>(this->band());
    T* const p = block.template shared<T>(this->scores());
    T* const log_sums = block.template shared<T>(rows);
    T* const deltas = block.template shared<T>(rows);

    copy_tile(block, this->queries(b, h, first, q));
    copy_tile(block, this->output_gradient(b, h, first, dy));
    this->copy_row_sums(block, b, h, first, log_sums, deltas);
    block.each(rows * leading, [&](int i) { dq[i] = T(0); });
    for (int key = begin / keys * keys; key < this->memory() + last; key += keys) {
      copy_tile(block, this->places(this->in.v + this->of_keys(b), h, key, keys, begin, kv));
      tile_product<T>(block, rows, keys, width, ByRows<T>{dy, leading}, ByRows<T>{kv, leading},
                      [&](int i, int j, T value) { p[i * of_scores + j] = value; });
      copy_tile(block, this->places(this->in.k + this->of_keys(b), h, key, keys, begin, kv));
      copy_tile(block, this->places(this->in.r, h, this->first_distance(first, key), rows + keys, 0,
                                    band));
      banded_scores<true, true>(block, rows, width, q, kv, band, [&](int i, int j, T products) {
        T& x = p[i * of_scores + j];
        x = this->visible(first + i, key + j, begin)
                ? math::exp(this->score(h, this->distance(first + i, key + j), products) -
                            log_sums[i]) *
                      (x - deltas[i]) * this->factor
                : T(0);
      });
      banded_sums(block, rows, width, p, kv, band, dq);
    }
    add_tile(block, dq, rows, this->head_dim(), first, this->count_queries(),
             this->to.q + b * s.queries * s.model() + h * s.head_dim, s.model());
  }
};

/// dk and dv of a tile of keys, and its share of du.
template <class T>
struct AttentionKeyGradient : AttentionBackward<T> {
  T* du;  ///< [B key_tiles, H D] or null

  Index blocks() const { return this->size.batch * this->size.heads * this->key_tiles(); }
  std::size_t shared_bytes() const {
    return 4 * detail::shared_bytes<T>(this->vectors(this->keys())) +
           detail::shared_bytes<T>(this->vectors(this->tile_rows)) +
           detail::shared_bytes<T>(this->band()) + detail::shared_bytes<T>(this->scores()) +
           2 * detail::shared_bytes<T>(this->tile_rows) + detail::shared_bytes<T>(this->keys());
  }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const AttentionSize& s = this->size;
    const int rows = this->tile_rows, keys = this->keys(), leading = this->leading();
    const int width = this->padded_head_dim(), of_scores = tile_leading(keys);
    const int tile = static_cast<int>(block.index() % this->key_tiles());
    const Index row = block.index() / this->key_tiles();
    const int h = static_cast<int>(row % s.heads), b = static_cast<int>(row / s.heads);
    const int key = tile * keys, begin = this->first_key(b);
    T* const k = block.template shared<T>(this->vectors(keys));
    T* const v = block.template shared<T>(this->vectors(keys));
    T* const dk = block.template shared<T>(this->vectors(keys));
    T* const dv = block.template shared<T>(this->vectors(keys));
    T* const x = block.template shared<T>(this->vectors(rows));  // q or dy
    T* const band = block.template shared<T>(this->band());
    T* const p = block.template shared<T>(this->scores());
    T* const log_sums = block.template shared<T>(rows);
    T* const deltas = block.template shared<T>(rows);
    T* const sums = block.template shared<T>(keys);

    copy_tile(block, this->places(this->in.k + this->of_keys(b), h, key, keys, begin, k));
    copy_tile(block, this->places(this->in.v + this->of_keys(b), h, key, keys, begin, v));
    block.each(keys * leading, [&](int i) { dk[i] = dv[i] = T(0); });
    block.each(keys, [&](int j) { sums[j] = T(0); });
    // The first query that sees one of these keys, if any does.
    const int nearest = key > this->memory() ? key - this->memory() : 0;
    const int from = key + keys > begin ? nearest / rows * rows : this->count_queries();
    for (int first = from; first < this->count_queries(); first += rows) {
      this->copy_row_sums(block, b, h, first, log_sums, deltas);
      copy_tile(block, this->queries(b, h, first, x));
      copy_tile(block, this->places(this->in.r, h, this->first_distance(first, key), rows + keys, 0,
                                    band));
      banded_scores<true, true>(block, rows, width, x, k, band, [&](int i, int j, T products) {
        p[i * of_scores + j] =
            this->visible(first + i, key + j, begin)
                ? math::exp(this->score(h, this->distance(first + i, key + j), products) -
                            log_sums[i])
                : T(0);
      });
      copy_tile(block, this->output_gradient(b, h, first, x));
      tile_product<T>(
          block, keys, width, rows, ByColumns<T>{p, of_scores}, ByColumns<T>{x, leading},
          [&](int j, int d, const Four<T>& value) { add_four(dv + j * leading + d, value); });
      if (!this->to.k && !du) continue;
      tile_product<T>(block, rows, keys, width, ByRows<T>{x, leading}, ByRows<T>{v, leading},
                      [&](int i, int j, T value) {
                        T& weight = p[i * of_scores + j];
                        if (weight != T(0)) weight *= (value - deltas[i]) * this->factor;
                      });
      copy_tile(block, this->queries(b, h, first, x));
      tile_product<T>(
          block, keys, width, rows, ByColumns<T>{p, of_scores}, ByColumns<T>{x, leading},
          [&](int j, int d, const Four<T>& value) { add_four(dk + j * leading + d, value); });
      block.template fold_rows<T>(
          keys, rows, Plus{}, [&](int j, int i) { return p[i * of_scores + j]; },
          [&](int j, T sum) { sums[j] += sum; });
    }
    const Index at = this->of_keys(b) + h * s.head_dim;
    if (this->to.k)
      add_tile(block, dk, keys, this->head_dim(), key, this->count_keys(), this->to.k + at,
               s.model());
    if (this->to.v)
      add_tile(block, dv, keys, this->head_dim(), key, this->count_keys(), this->to.v + at,
               s.model());
    if (du)
      block.each(this->head_dim(), [&](int d) {
        T sum = T(0);
        for (int j = 0; j < keys; ++j) sum += sums[j] * k[j * leading + d];
        du[(b * this->key_tiles() + tile) * s.model() + h * s.head_dim + d] = sum;
      });
  }
};

/// dr of a tile of distances from a part of the batch, and its share of dw. Here the scores of a
/// tile are those of query i and distance row c, whose key is j = c - (L - 1) + i: keys and values
/// are the band.
template <class T>
struct AttentionDistanceGradient : AttentionBackward<T> {
  Index parts;  ///< of the batch
  T* dr;        ///< [parts, K, H D]
  T* dw;        ///< [parts key_tiles, H D] or null

  Index blocks() const { return parts * this->size.heads * this->key_tiles(); }
  std::size_t shared_bytes() const {
    return 2 * detail::shared_bytes<T>(this->vectors(this->keys())) +
           detail::shared_bytes<T>(this->vectors(this->tile_rows)) +
           detail::shared_bytes<T>(this->band()) + detail::shared_bytes<T>(this->scores()) +
           2 * detail::shared_bytes<T>(this->tile_rows) + detail::shared_bytes<T>(this->keys());
  }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const AttentionSize& s = this->size;
    const int rows = this->tile_rows, keys = this->keys(), leading = this->leading();
    const int width = this->padded_head_dim(), of_scores = tile_leading(keys);
    const int tile = static_cast<int>(block.index() % this->key_tiles());
    const Index row = block.index() / this->key_tiles();
    const int h = static_cast<int>(row % s.heads), part = static_cast<int>(row / s.heads);
    const int distance = tile * keys;
    T* const r = block.template shared<T>(this->vectors(keys));
    T* const sum_r = block.template shared<T>(this->vectors(keys));
    T* const x = block.template shared<T>(this->vectors(rows));  // dy or q
    T* const band = block.template shared<T>(this->band());
    T* const p = block.template shared<T>(this->scores());
    T* const log_sums = block.template shared<T>(rows);
    T* const deltas = block.template shared<T>(rows);
    T* const sums = block.template shared<T>(keys);

    copy_tile(block, this->places(this->in.r, h, distance, keys, 0, r));
    block.each(keys * leading, [&](int i) { sum_r[i] = T(0); });
    block.each(keys, [&](int c) { sums[c] = T(0); });
    const int end = static_cast<int>((part + 1) * s.batch / parts);
    for (int b = static_cast<int>(part * s.batch / parts); b < end; ++b) {
      const int begin = this->first_key(b);
      // The first query for which one of these distances is not before the first key.
      const int nearest = begin + this->count_queries() - distance - keys;
      const int from = nearest > 0 ? nearest / rows * rows : 0;
      for (int first = from; first < this->count_queries(); first += rows) {
        const int key = distance - (this->count_queries() - 1) + first;  // of the band's first row
        this->copy_row_sums(block, b, h, first, log_sums, deltas);
        copy_tile(block, this->output_gradient(b, h, first, x));
        copy_tile(block,
                  this->places(this->in.v + this->of_keys(b), h, key, rows + keys, begin, band));
        banded_scores<false, false>(block, rows, width, x, r, band,
                                    [&](int i, int c, T value) { p[i * of_scores + c] = value; });
        copy_tile(block, this->queries(b, h, first, x));
        copy_tile(block,
                  this->places(this->in.k + this->of_keys(b), h, key, rows + keys, begin, band));
        banded_scores<false, true>(block, rows, width, x, r, band, [&](int i, int c, T products) {
          T& weight = p[i * of_scores + c];
          weight = this->visible(first + i, key + i + c, begin)
                       ? math::exp(this->score(h, distance + c, products) - log_sums[i]) *
                             (weight - deltas[i]) * this->factor
                       : T(0);
        });
        tile_product<T>(
            block, keys, width, rows, ByColumns<T>{p, of_scores}, ByColumns<T>{x, leading},
            [&](int c, int d, const Four<T>& value) { add_four(sum_r + c * leading + d, value); });
        block.template fold_rows<T>(
            keys, rows, Plus{}, [&](int c, int i) { return p[i * of_scores + c]; },
            [&](int c, T sum) { sums[c] += sum; });
      }
    }
    // The queries stood with u and belong here with w.
    block.each(keys * this->head_dim(), [&](int item) {
      const int c = item / this->head_dim(), d = item % this->head_dim();
      const Index column = h * s.head_dim + d;
      if (distance + c < s.keys)
        dr[(part * s.keys + distance + c) * s.model() + column] =
            sum_r[c * leading + d] + sums[c] * (this->in.w[column] - this->in.u[column]);
    });
    if (dw)
      block.each(this->head_dim(), [&](int d) {
        T sum = T(0);
        for (int c = 0; c < keys; ++c) sum += sums[c] * r[c * leading + d];
        dw[(part * this->key_tiles() + tile) * s.model() + h * s.head_dim + d] = sum;
      });
  }
};

/// to[i] = x_i · (y_m - z_m), m = i mod period, for vectors of n; z may be null.
template <class T>
struct RowProducts {
  static constexpr int threads = 256, rows = 64;
  const T *x, *y, *z;
  Index count, period;
  int n;
  T* to;

  Index blocks() const { return (count + rows - 1) / rows; }
  std::size_t shared_bytes() const { return 0; }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const Index first = block.index() * rows;
    const int here = static_cast<int>(count - first < rows ? count - first : rows);
    block.template fold_rows<T>(
        here, n, Plus{},
        [&](int i, int d) {
          const Index at = (first + i) % period * n + d;
          return x[(first + i) * n + d] * (z ? y[at] - z[at] : y[at]);
        },
        [&](int i, T sum) { to[first + i] = sum; });
  }
};

/// `relative_attention` by tiles of queries and keys in shared memory: no score is ever written to
/// global memory, and the backward pass computes them once more from `log_sum`. Its sums run in an
/// order that the sizes alone determine.
template <class System>
struct TiledAttention {
  using B = ThrustBackend<System>;
  static constexpr bool keeps_result = true;

  /// As `ComposedAttention::forward`.
  template <class T>
  static void forward(const AttentionSize& s, const AttentionInputs<T>& in, T* y, T* log_sum) {
    if (!fits<T>(s)) {
      ComposedAttention<B>::forward(s, in, y, log_sum);
      return;
    }
    if (s.batch * s.queries == 0) return;
    Tensor<T, B> bias(Shape{s.keys, s.heads});
    run(AttentionForward<T>{tiles(s, in, bias.data()), y, log_sum});
  }

  /// As `ComposedAttention::backward`.
  template <class T>
  static void backward(const AttentionSize& s, const AttentionInputs<T>& in, const T* y,
                       const T* log_sum, const T* dy, const AttentionGradients<T>& to) {
    if (!fits<T>(s)) {
      ComposedAttention<B>::backward(s, in, y, log_sum, dy, to);
      return;
    }
    if (s.batch * s.queries == 0) return;
    Tensor<T, B> bias(Shape{s.keys, s.heads}), delta(Shape{s.batch, s.queries, s.heads});
    const Index rows = delta.size();
    row_products(dy, y, static_cast<const T*>(nullptr), rows, rows, s.head_dim, delta.data());
    AttentionBackward<T> shared{tiles(s, in, bias.data()), log_sum, delta.data(), dy, to};
    shared.wide = shared.wide && aligned_for_four(dy, s.head_dim);
    if (to.q) run(AttentionQueryGradient<T>{shared});
    if (to.k || to.v || to.u) key_gradients(shared);
    if (to.r || to.w) distance_gradients(shared);
  }

  /// Whether such a call is computed by tiles: heads must not be too wide for shared memory, and
  /// places are counted in 32 bits. Others are left to the composition.
  template <class T>
  static bool fits(const AttentionSize& s) {
    constexpr Index most = Index{1} << 30;
    return s.batch < most && s.heads < most && s.keys < most && has_room<AttentionForward<T>>(s) &&
           has_room<AttentionQueryGradient<T>>(s) && has_room<AttentionKeyGradient<T>>(s) &&
           has_room<AttentionDistanceGradient<T>>(s);
  }

 private:
  // The kernel with as many rows as shared memory has room for, with 0 if not even 8.
  template <class Kernel>
  static Kernel fitted(Kernel kernel) {
    for (kernel.tile_rows = 64; kernel.tile_rows >= 8; kernel.tile_rows /= 2)
      if (kernel.shared_bytes() <= most_shared) return kernel;
    kernel.tile_rows = 0;
    return kernel;
  }
  template <class Kernel>
  static bool has_room(const AttentionSize& s) {
    Kernel kernel{};
    kernel.size = s;
    return fitted(kernel).tile_rows > 0;
  }
  template <class Kernel>
  static void run(const Kernel& kernel) {
    const Kernel runs = fitted(kernel);
    launch<System>(runs.blocks(), runs);
  }

  template <class T>
  static void row_products(const T* x, const T* y, const T* z, Index count, Index period, Index n,
                           T* to) {
    const RowProducts<T> kernel{x, y, z, count, period, static_cast<int>(n), to};
    launch<System>(kernel.blocks(), kernel);
  }

  template <class T>
  static AttentionTiles<T> tiles(const AttentionSize& s, const AttentionInputs<T>& in, T* bias) {
    row_products(in.r, in.w, in.u, s.keys * s.heads, s.heads, s.head_dim, bias);
    const bool wide = aligned_for_four(in.q, s.head_dim) && aligned_for_four(in.k, s.head_dim) &&
                      aligned_for_four(in.v, s.head_dim) && aligned_for_four(in.r, s.head_dim);
    return {s, in, bias, T(1) / std::sqrt(static_cast<T>(s.head_dim)), wide, 0};
  }

  template <class T>
  static void key_gradients(const AttentionBackward<T>& shared) {
    const AttentionSize& s = shared.size;
    AttentionKeyGradient<T> kernel = fitted(AttentionKeyGradient<T>{shared, nullptr});
    Tensor<T, B> du;
    if (shared.to.u) {
      du = Tensor<T, B>(Shape{s.batch * kernel.key_tiles(), s.model()});
      kernel.du = du.data();
    }
    launch<System>(kernel.blocks(), kernel);
    if (shared.to.u) add_column_sums<B>(du.dim(0), s.model(), du.data(), shared.to.u);
  }

  template <class T>
  static void distance_gradients(const AttentionBackward<T>& shared) {
    const AttentionSize& s = shared.size;
    AttentionDistanceGradient<T> kernel =
        fitted(AttentionDistanceGradient<T>{shared, 1, nullptr, nullptr});
    // Enough blocks for a GPU, and no more rows to add up than that takes.
    constexpr Index blocks = 512;
    kernel.parts = std::clamp<Index>(blocks / std::max<Index>(1, kernel.blocks()), 1,
                                     std::max<Index>(1, s.batch));
    Tensor<T, B> dr(Shape{kernel.parts, s.keys, s.model()}), dw;
    kernel.dr = dr.data();
    if (shared.to.w) {
      dw = Tensor<T, B>(Shape{kernel.parts * kernel.key_tiles(), s.model()});
      kernel.dw = dw.data();
    }
    launch<System>(kernel.blocks(), kernel);
    if (shared.to.r) add_column_sums<B>(kernel.parts, s.keys * s.model(), dr.data(), shared.to.r);
    if (shared.to.w) add_column_sums<B>(dw.dim(0), s.model(), dw.data(), shared.to.w);
  }
};

}  // namespace detail

}  // namespace infty
