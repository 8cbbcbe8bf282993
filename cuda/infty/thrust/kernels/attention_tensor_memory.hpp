// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/core/config.hpp>
#include <infty/core/kernel/attention.hpp>
#include <infty/thrust/async_rows.hpp>
#include <infty/thrust/fragments.hpp>
#include <infty/thrust/host_block.hpp>
#include <infty/thrust/kernels/attention_tiles.hpp>

namespace infty::detail {

/// Which part of the work a block of `TensorAttentionForward` does. It lies in shared memory, for
/// wide heads leave no register for it.
struct TensorAttentionWork {
  Index row, head;   ///< of the batch; of all heads
  int first, begin;  ///< the first of 64 queries, and the first key that they may see
};

/// Sizes of a tile of `TensorAttentionForward`, and where it lies in shared memory.
template <int width>
struct TensorAttentionSizes {
  static_assert(width == 32 || width == 64 || width == 128);
  static constexpr int threads = 128, warps = threads / warp_lanes;
  static constexpr int warp_rows = 16, block_rows = warps * warp_rows, keys = 32;
  /// Rows of r that the warps of a block are at, each 16 before the next one's.
  static constexpr int places = keys + (warps - 1) * warp_rows;
  /// Elements between two rows. Of q, k and r the device loads 4 neighbours at once: 8 lanes have
  /// two rows, of which 16 columns lie in other banks. Of v they have the rows 2 t, t < 4.
  static constexpr int leading = width + 16, of_values = width + 4;
  /// The same of products with the band: 16 lanes store two neighbours each in 4 rows.
  static constexpr int of_band = keys + warp_rows + 8;

  static std::size_t shared_bytes() {
    return detail::shared_bytes<TensorAttentionWork>(1) +
           detail::shared_bytes<float>(keys * leading) +
           detail::shared_bytes<float>(places * leading) +
           detail::shared_bytes<float>(keys * of_values) + detail::shared_bytes<float>(places) +
           detail::shared_bytes<float>(block_rows * of_band);
  }
};

/// Where a block of `TensorAttentionForward` is, what it has in shared memory, and how that comes
/// there; `attention` says what of.
template <int width, class Block>
struct TensorAttentionMemory : TensorAttentionSizes<width> {
  using Sizes = TensorAttentionSizes<width>;
  using Sizes::block_rows, Sizes::keys, Sizes::leading, Sizes::of_band, Sizes::of_values,
      Sizes::places, Sizes::warp_rows;
  using Warp = typename Block::Warp;

  const AttentionTiles<float>& attention;
  const TensorAttentionWork* work;
  float *k, *r, *v, *bias, *band;

  INFTY_HOST_DEVICE TensorAttentionMemory(const AttentionTiles<float>& all, Block& block)
      : attention(all) {
    TensorAttentionWork* const to = block.template shared<TensorAttentionWork>(1);
    block.each(1, [&](int) {
      // Late queries see more keys: their blocks start first.
      const Index tiles = all.query_tiles(), heads = all.size.heads, row = block.index() / tiles;
      const Index tile = tiles - 1 - (block.index() - row * tiles), of_batch = row / heads;
      *to = {of_batch, row - of_batch * heads, static_cast<int>(tile) * block_rows,
             all.seen(static_cast<int>(of_batch)).begin};
    });
    work = to;
    k = block.template shared<float>(keys * leading);
    r = block.template shared<float>(places * leading);
    v = block.template shared<float>(keys * of_values);
    bias = block.template shared<float>(places);
    band = block.template shared<float>(block_rows * of_band);
  }

  /// Where the keys end that the last of the queries sees.
  INFTY_HOST_DEVICE int end() const {
    const int next = work->first + block_rows, all = attention.count_queries();
    return attention.memory() + (next < all ? next : all);
  }
  /// A place in the ring of rows of r, from a number below two rounds.
  INFTY_HOST_DEVICE static int wrapped(int place) {
    return place < places ? place : place - places;
  }
  /// The first query of a warp.
  INFTY_HOST_DEVICE int query(const Warp& warp) const {
    return work->first + warp.index() * warp_rows;
  }
  /// Whether a warp has a query that sees one of the keys from `key` on.
  INFTY_HOST_DEVICE bool sees(const Warp& warp, int key) const {
    const int i = query(warp);
    return i < attention.count_queries() && key < attention.memory() + i + warp_rows;
  }

  /// Zeros in all columns from D on, which no copy reaches.
  INFTY_HOST_DEVICE void clear(Block& block) const {
    const int d = attention.head_dim(), free = width - d;
    if (free == 0) return;
    block.each((keys + places) * free, [&](int i) {
      const int row = i / free;
      (row < keys ? k + row * leading : r + (row - keys) * leading)[d + i - row * free] = 0;
    });
    block.each(keys * free, [&](int i) {
      const int row = i / free;
      v[row * of_values + d + i - row * free] = 0;
    });
  }

  /// Begins to copy a tile of keys.
  INFTY_HOST_DEVICE void start_keys(Block& block, int key) const {
    start(block, attention.in.k + attention.of_keys(static_cast<int>(work->row)), key, keys,
          work->begin, k, leading, 0, keys);
  }
  /// Begins to copy a tile of values.
  INFTY_HOST_DEVICE void start_values(Block& block, int key) const {
    start(block, attention.in.v + attention.of_keys(static_cast<int>(work->row)), key, keys,
          work->begin, v, of_values, 0, keys);
  }
  /// Begins to copy rows of r, from `distance` on, and their biases to a place in the ring.
  INFTY_HOST_DEVICE void start_distances(Block& block, int distance, int count, int place) const {
    start(block, attention.in.r, distance, count, 0, r, leading, place, places);
    constexpr int bytes = sizeof(float);
    block.template start<bytes>({attention.bias + work->head, attention.size.heads * bytes, bytes,
                                 false, distance, 0, attention.count_keys(), count, bias, bytes,
                                 place, places});
  }

  /// Where a warp's products with the band stand, 16 rows.
  INFTY_HOST_DEVICE float* of_warp(const Warp& warp) const {
    return band + warp.index() * warp_rows * of_band;
  }
  /// Where a lane's sum i of products with the band stands.
  INFTY_HOST_DEVICE static int of_entry(int lane, int i) {
    const Entry at = entry_of_sum(lane, i % 4);
    return at.row * of_band + i / 4 * 8 + at.column;
  }

 private:
  INFTY_HOST_DEVICE void start(Block& block, const float* from, int at, int count, int from_row,
                               float* to, int step, int place, int all) const {
    constexpr int bytes = sizeof(float);
    const AttentionSize& s = attention.size;
    block.template start<width * bytes>({from + work->head * s.head_dim, s.model() * bytes,
                                         attention.head_dim() * bytes, attention.wide, at, from_row,
                                         attention.count_keys(), count, to, step * bytes, place,
                                         all});
  }
};

}  // namespace infty::detail
