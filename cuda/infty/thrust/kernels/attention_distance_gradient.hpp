// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/core/fold.hpp>
#include <infty/thrust/kernels/attention_backward.hpp>
#include <infty/thrust/kernels/attention_products.hpp>
#include <infty/thrust/tile_product.hpp>

namespace infty::detail {

/// dr of a tile of distances from a part of the batch, and its share of dw. Here the scores of a
/// tile are those of query i and distance row c, whose key is j = c - (L - 1) + i: keys and values
/// are the band.
/// @tparam mirrored  as the size says: what it takes to know would not fit into the other's
/// registers
template <class T, class Products = ByThreads<T>, bool mirrored = false>
struct AttentionDistanceGradient : AttentionBackward<T> {
  Index parts;  ///< of the batch
  T* dr;        ///< [parts, distances, H D]
  T* dw;        ///< [parts tiles, H D] or null

  static constexpr int abreast = mirrored ? 1 : 2;

  /// Rows of r, and tiles of them.
  INFTY_HOST_DEVICE Index all() const { return mirrored ? this->size.queries : this->size.keys; }
  INFTY_HOST_DEVICE int tiles() const {
    return (static_cast<int>(all()) + this->keys() - 1) / this->keys();
  }
  INFTY_HOST_DEVICE KeyRange range(int b) const {
    if constexpr (mirrored) return this->seen(b);
    return {static_cast<int>(this->in.first_key(this->size, b)), this->count_keys()};
  }
  INFTY_HOST_DEVICE bool in_sight(int i, int j, KeyRange seen) const {
    if constexpr (mirrored) return i < this->count_queries() && j >= 0 && j <= i && j < seen.end;
    return i < this->count_queries() && j >= seen.begin &&
           j <= static_cast<int>(this->size.keys - this->size.queries) + i;
  }

  /// One for products with the band to wait in, if they must.
  static constexpr std::size_t tiles_of_scores = Products::needs_scratch ? 2 : 1;

  Index blocks() const { return parts * this->size.heads * tiles(); }
  std::size_t shared_bytes() const {
    return 2 * detail::shared_bytes<T>(this->vectors(this->keys())) +
           detail::shared_bytes<T>(this->vectors(this->tile_rows)) +
           detail::shared_bytes<T>(this->band()) +
           tiles_of_scores * detail::shared_bytes<T>(this->scores()) +
           2 * detail::shared_bytes<T>(this->tile_rows) + detail::shared_bytes<T>(this->keys());
  }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const AttentionSize& s = this->size;
    const int rows = this->tile_rows, keys = this->keys(), leading = this->leading();
    const int width = this->padded_head_dim(), of_scores = tile_leading(keys);
    const int tile = static_cast<int>(block.index() % tiles());
    const Index row = block.index() / tiles();
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
    T* scratch = nullptr;
    if constexpr (Products::needs_scratch) scratch = block.template shared<T>(this->scores());

    copy_tile(block, this->source(this->in.r, h, distance, keys, 0, static_cast<int>(all()), r));
    block.each(keys * leading, [&](int i) { sum_r[i] = T(0); });
    block.each(keys, [&](int c) { sums[c] = T(0); });
    const int end = static_cast<int>((part + 1) * s.batch / parts);
    for (int b = static_cast<int>(part * s.batch / parts); b < end; ++b) {
      const KeyRange seen = range(b);
      // The first query for which one of these distances is not before the first key.
      const int nearest = seen.begin + this->count_queries() - distance - keys;
      const int from = nearest > 0 ? nearest / rows * rows : 0;
      for (int first = from; first < this->count_queries(); first += rows) {
        const int key = distance - (this->count_queries() - 1) + first;  // of the band's first row
        if (mirrored && key >= seen.end) break;
        this->copy_row_sums(block, b, h, first, log_sums, deltas);
        copy_tile(block, this->output_gradient(b, h, first, x));
        copy_tile(block,
                  this->places(this->in.v + this->of_keys(b), h, key, rows + keys, seen, band));
        Products::template banded<false, false>(
            block, rows, width, x, r, band, scratch,
            [&](int i, int c, T product) { p[i * of_scores + c] = product; });
        copy_tile(block, this->queries(b, h, first, x));
        copy_tile(block,
                  this->places(this->in.k + this->of_keys(b), h, key, rows + keys, seen, band));
        Products::template banded<false, true>(
            block, rows, width, x, r, band, scratch, [&](int i, int c, T products) {
              T& to_add = p[i * of_scores + c];
              to_add =
                  in_sight(first + i, key + i + c, seen)
                      ? this->score_gradient(this->weight(h, distance + c, products, log_sums[i]),
                                             to_add, deltas[i])
                      : T(0);
            });
        Products::add_transposed(block, keys, width, rows, p, x, sum_r);
        block.template reduce_rows<T>(
            keys, rows, Plus{}, [&](int c, int i) { return p[i * of_scores + c]; },
            [&](int c, T sum) { sums[c] += sum; });
      }
    }
    // The queries stood with u and belong here with w.
    block.each(keys * this->head_dim(), [&](int item) {
      const int c = this->dims.quotient(item), d = item - c * this->head_dim();
      const Index column = h * s.head_dim + d;
      if (distance + c < all())
        dr[(part * all() + distance + c) * s.model() + column] =
            sum_r[c * leading + d] + sums[c] * (this->in.w[column] - this->in.u[column]);
    });
    if (dw)
      block.each(this->head_dim(), [&](int d) {
        T sum = T(0);
        for (int c = 0; c < keys; ++c) sum += sums[c] * r[c * leading + d];
        dw[(part * tiles() + tile) * s.model() + h * s.head_dim + d] = sum;
      });
  }
};

}  // namespace infty::detail
