// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>

#include <infty/core/fold.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/thrust/kernels/attention_tiles.hpp>
#include <infty/thrust/kernels/banded_tiles.hpp>
#include <infty/thrust/tile.hpp>
#include <infty/thrust/tile_product.hpp>

namespace infty::detail {

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
    const int first = tile * rows;
    const KeyRange seen = this->seen(b);
    const int last = first + rows < this->count_queries() ? first + rows : this->count_queries();
    T* const q = block.template shared<T>(this->vectors(rows));
    T* const out = block.template shared<T>(this->vectors(rows));
    T* const kv = block.template shared<T>(this->vectors(keys));
    T* const band = block.template shared<T>(this->band());
    T* const p = block.template shared<T>(this->scores());
    T* const top = block.template shared<T>(rows);
    T* const sum = block.template shared<T>(rows);
    T* const scale = block.template shared<T>(rows);
    constexpr T none = -math::infinity<T>;

    copy_tile(block, this->queries(b, h, first, q));
    block.each(rows * leading, [&](int i) { out[i] = T(0); });
    block.each(rows, [&](int i) {
      top[i] = none;
      sum[i] = T(0);
    });
    const int end = this->end_key(seen, last);
    for (int key = seen.begin / keys * keys; key < end; key += keys) {
      copy_tile(block, this->places(this->in.k + this->of_keys(b), h, key, keys, seen, kv));
      copy_tile(block, this->distances(h, this->first_distance(first, key), rows + keys, band));
      banded_scores<true, true>(block, rows, width, q, kv, band, [&](int i, int j, T products) {
        p[i * of_scores + j] = this->visible(first + i, key + j, seen)
                                   ? this->score(h, this->distance(first + i, key + j), products)
                                   : none;
      });
      copy_tile(block, this->places(this->in.v + this->of_keys(b), h, key, keys, seen, kv));
      block.template reduce_rows<T>(
          rows, keys, Larger{}, [&](int i, int j) { return p[i * of_scores + j]; },
          [&](int i, T largest) {
            const T before = top[i];
            const T after = before > largest ? before : largest;
            scale[i] = before == after ? T(1) : math::exp(before - after);
            top[i] = after;
          });
      block.template reduce_rows<T>(
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
      const int i = this->dims.quotient(item), d = item - i * this->head_dim();
      if (first + i < last)
        y[(b * s.queries + first + i) * e + h * s.head_dim + d] = out[i * leading + d] / sum[i];
    });
    block.each(rows, [&](int i) {
      if (first + i < last)
        log_sum[(b * s.queries + first + i) * s.heads + h] = top[i] + std::log(sum[i]);
    });
  }
};

}  // namespace infty::detail
