// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/core/fold.hpp>
#include <infty/core/math.hpp>
#include <infty/thrust/kernels/attention_products.hpp>
#include <infty/thrust/kernels/attention_tiles.hpp>
#include <infty/thrust/tile.hpp>
#include <infty/thrust/tile_product.hpp>

namespace infty::detail {

/// What the kernels of the backward pass share. Each computes the weights of a tile once more, and
/// from them and the products of values with the result's gradient what is to be added up: the
/// gradients of the sums of two products that scores are made of. Products come from `Products`,
/// `ByThreads` or `ByTensorCores`.
template <class T>
struct AttentionBackward : AttentionTiles<T> {
  const T *log_sum, *delta;  ///< [B, L, H], delta = d_out · y - d_log_sum
  const T* d_out;            ///< [B, L, H D]
  AttentionGradients<T> to;

  INFTY_HOST_DEVICE TileSource<T> output_gradient(int b, int h, int first, T* tile) const {
    return this->source(d_out + b * this->size.queries * this->size.model(), h, first,
                        this->tile_rows, 0, this->count_queries(), tile);
  }
  /// The weight of a pair that is visible, at distance row c, from the sum of its two products.
  INFTY_HOST_DEVICE T weight(int h, int c, T products, T log_of_sum) const {
    return math::exp(this->score(h, c, products) - log_of_sum);
  }
  /// The same of any query and key, 0 where the pair is not.
  INFTY_HOST_DEVICE T weight_if_visible(int h, int query, int key, KeyRange seen, T products,
                                        T log_of_sum) const {
    return this->visible(query, key, seen)
               ? weight(h, this->distance(query, key), products, log_of_sum)
               : T(0);
  }
  /// The gradient of the sum of a pair's two products, from its weight and the product of its value
  /// with the gradient of the query's result.
  INFTY_HOST_DEVICE T score_gradient(T weight, T product, T row_delta) const {
    return weight * (product - row_delta) * this->factor;
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
template <class T, class Products = ByThreads<T>>
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
    const int first = tile * rows;
    const KeyRange seen = this->seen(b);
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
    const auto copy_keys = [&](const T* from, int key) {
      copy_tile(block, this->places(from + this->of_keys(b), h, key, keys, seen, kv));
    };
    const int end = this->end_key(seen, last);
    for (int key = seen.begin / keys * keys; key < end; key += keys) {
      const auto weight = [&](int i, int j, T products) {
        return this->weight_if_visible(h, first + i, key + j, seen, products, log_sums[i]);
      };
      const auto copy_band = [&] {
        copy_tile(block, this->distances(h, this->first_distance(first, key), rows + keys, band));
      };
      if constexpr (Products::needs_scratch) {
        // Shared memory has no room for another tile of scores: the keys are read twice instead.
        copy_keys(this->in.k, key);
        copy_band();
        Products::template banded<true, true>(
            block, rows, width, q, kv, band, p,
            [&](int i, int j, T products) { p[i * of_scores + j] = weight(i, j, products); });
        copy_keys(this->in.v, key);
        Products::products(block, rows, keys, width, dy, kv, [&](int i, int j, T product) {
          T& x = p[i * of_scores + j];
          if (x != T(0)) x = this->score_gradient(x, product, deltas[i]);
        });
        copy_keys(this->in.k, key);
      } else {
        copy_keys(this->in.v, key);
        Products::products(block, rows, keys, width, dy, kv,
                           [&](int i, int j, T product) { p[i * of_scores + j] = product; });
        copy_keys(this->in.k, key);
        copy_band();
        Products::template banded<true, true>(
            block, rows, width, q, kv, band, nullptr, [&](int i, int j, T products) {
              T& x = p[i * of_scores + j];
              const T w = weight(i, j, products);
              x = w != T(0) ? this->score_gradient(w, x, deltas[i]) : T(0);
            });
      }
      Products::add_banded(block, rows, width, p, kv, band, dq);
    }
    add_tile(block, dq, rows, this->dims, first, this->count_queries(),
             this->to.q + b * s.queries * s.model() + h * s.head_dim, s.model());
  }
};

/// dk and dv of a tile of keys, and its share of du.
template <class T, class Products = ByThreads<T>>
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
    const int key = tile * keys;
    const KeyRange seen = this->seen(b);
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

    copy_tile(block, this->places(this->in.k + this->of_keys(b), h, key, keys, seen, k));
    copy_tile(block, this->places(this->in.v + this->of_keys(b), h, key, keys, seen, v));
    block.each(keys * leading, [&](int i) { dk[i] = dv[i] = T(0); });
    block.each(keys, [&](int j) { sums[j] = T(0); });
    // The first query that sees one of these keys, if any does.
    const int nearest = key > this->memory() ? key - this->memory() : 0;
    const int from =
        key + keys > seen.begin && key < seen.end ? nearest / rows * rows : this->count_queries();
    for (int first = from; first < this->count_queries(); first += rows) {
      this->copy_row_sums(block, b, h, first, log_sums, deltas);
      copy_tile(block, this->queries(b, h, first, x));
      copy_tile(block, this->distances(h, this->first_distance(first, key), rows + keys, band));
      Products::template banded<true, true>(
          block, rows, width, x, k, band, p, [&](int i, int j, T products) {
            p[i * of_scores + j] =
                this->weight_if_visible(h, first + i, key + j, seen, products, log_sums[i]);
          });
      copy_tile(block, this->output_gradient(b, h, first, x));
      Products::add_transposed(block, keys, width, rows, p, x, dv);
      if (!this->to.k && !du) continue;
      Products::products(block, rows, keys, width, x, v, [&](int i, int j, T product) {
        T& weight = p[i * of_scores + j];
        if (weight != T(0)) weight = this->score_gradient(weight, product, deltas[i]);
      });
      copy_tile(block, this->queries(b, h, first, x));
      Products::add_transposed(block, keys, width, rows, p, x, dk);
      block.template reduce_rows<T>(
          keys, rows, Plus{}, [&](int j, int i) { return p[i * of_scores + j]; },
          [&](int j, T sum) { sums[j] += sum; });
    }
    const Index at = this->of_keys(b) + h * s.head_dim;
    if (this->to.k)
      add_tile(block, dk, keys, this->dims, key, this->count_keys(), this->to.k + at, s.model());
    if (this->to.v)
      add_tile(block, dv, keys, this->dims, key, this->count_keys(), this->to.v + at, s.model());
    if (du)
      block.each(this->head_dim(), [&](int d) {
        T sum = T(0);
        for (int j = 0; j < keys; ++j) sum += sums[j] * k[j * leading + d];
        du[(b * this->key_tiles() + tile) * s.model() + h * s.head_dim + d] = sum;
      });
  }
};

}  // namespace infty::detail
