// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <infty/core/fold.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/thrust/async_rows.hpp>
#include <infty/thrust/kernels/attention_tiles.hpp>
#include <infty/thrust/tensor_product.hpp>
#include <infty/thrust/tile_product.hpp>
#include <infty/thrust/unroll.hpp>

namespace infty::detail {

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
    return detail::shared_bytes<float>(keys * leading) +
           detail::shared_bytes<float>(places * leading) +
           detail::shared_bytes<float>(keys * of_values) + detail::shared_bytes<float>(places) +
           detail::shared_bytes<float>(block_rows * of_band);
  }
};

/// A block's work on a tile of queries, step by step; `attention` says what of.
template <int parts, int width, class Block>
struct TensorAttentionTile : TensorAttentionSizes<width> {
  using Sizes = TensorAttentionSizes<width>;
  using Sizes::block_rows, Sizes::keys, Sizes::leading, Sizes::of_band, Sizes::of_values,
      Sizes::places, Sizes::warp_rows;
  using Warp = typename Block::Warp;
  template <int N>
  using Floats = typename Warp::template Lanes<float, N>;

  /// What a warp keeps. A lane has rows lane / 4 and 8 more, and of 8 columns the two that it has
  /// of a product's sums; which columns of q and y these are, `load_queries` and `end` say.
  struct State {
    Floats<width / 2> q, out;  // out: relative to exp(top), to be divided by the sum
    Floats<keys / 2> p;        // scores, then weights
    Floats<2> top, sum;        // sum: of this lane's weights, not yet of its row's
  };

  const AttentionTiles<float>& attention;
  int b, h, first, last, begin;  ///< queries [first, last), and the first key that they may see
  float *k, *r, *v, *bias, *band;

  INFTY_HOST_DEVICE TensorAttentionTile(const AttentionTiles<float>& all, Block& block)
      : attention(all) {
    // Late queries see more keys: their blocks start first.
    const int tiles = all.query_tiles(), heads = static_cast<int>(all.size.heads);
    const int row = static_cast<int>(block.index() / tiles);
    first = (tiles - 1 - static_cast<int>(block.index() - Index{row} * tiles)) * block_rows;
    last = first + block_rows < all.count_queries() ? first + block_rows : all.count_queries();
    b = row / heads;
    h = row - b * heads;
    begin = all.first_key(b);
    k = block.template shared<float>(keys * leading);
    r = block.template shared<float>(places * leading);
    v = block.template shared<float>(keys * of_values);
    bias = block.template shared<float>(places);
    band = block.template shared<float>(block_rows * of_band);
  }

  /// A place in the ring of rows of r, from a number below two rounds.
  INFTY_HOST_DEVICE static int wrapped(int place) {
    return place < places ? place : place - places;
  }
  /// The first query of a warp.
  INFTY_HOST_DEVICE int query(const Warp& warp) const { return first + warp.index() * warp_rows; }
  /// Whether a warp has a query that sees one of the keys from `key` on.
  INFTY_HOST_DEVICE bool sees(const Warp& warp, int key) const {
    const int i = query(warp);
    return i < last && key < attention.memory() + i + warp_rows;
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
    start(block, attention.in.k + attention.of_keys(b), key, keys, begin, k, leading, 0, keys);
  }
  /// Begins to copy a tile of values.
  INFTY_HOST_DEVICE void start_values(Block& block, int key) const {
    start(block, attention.in.v + attention.of_keys(b), key, keys, begin, v, of_values, 0, keys);
  }
  /// Begins to copy rows of r, from `distance` on, and their biases to a place in the ring.
  INFTY_HOST_DEVICE void start_distances(Block& block, int distance, int count, int place) const {
    start(block, attention.in.r, distance, count, 0, r, leading, place, places);
    constexpr int bytes = sizeof(float);
    block.template start<bytes>({attention.bias + h, attention.size.heads * bytes, bytes, false,
                                 distance, 0, attention.count_keys(), count, bias, bytes, place,
                                 places});
  }

  /// Reads a warp's queries: of every 16 columns a lane has 4 neighbours, from 4 (lane % 4) on, as
  /// of two steps of 8.
  INFTY_HOST_DEVICE void load_queries(const Warp& warp, State& state) const {
    const AttentionSize& s = attention.size;
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int side = 0; side < 2; ++side) {
        const int i = query(warp) + lane / 4 + side * 8;
        const bool there = i < last;
        const float* const q =
            attention.in.q + (b * s.queries + (there ? i : first)) * s.model() + h * s.head_dim;
        const float* const u = attention.in.u + h * s.head_dim;
        INFTY_OVER_REGISTERS
        for (int c = 0; c < width / 16; ++c) {
          const int column = 16 * c + lane % 4 * 4;
          const Four<float> x = four(q, column), y = four(u, column);
          INFTY_OVER_REGISTERS
          for (int l = 0; l < 4; ++l)
            state.q[lane][8 * c + l / 2 * 4 + side * 2 + l % 2] = there ? x.x[l] + y.x[l] : 0;
        }
      }
      INFTY_OVER_REGISTERS
      for (int i = 0; i < width / 2; ++i) state.out[lane][i] = 0;
      INFTY_OVER_REGISTERS
      for (int i = 0; i < 2; ++i) {
        state.top[lane][i] = -math::infinity<float>;
        state.sum[lane][i] = 0;
      }
    });
  }

  /// Computes the products with the 16 rows of r before those that the first tile of keys brings.
  INFTY_HOST_DEVICE void start_scores(const Warp& warp, const State& state) const {
    if (query(warp) >= last) return;
    Floats<warp_rows / 2> sum;
    by_distance(warp, state.q, places - (warp.index() + 1) * warp_rows, sum);
    float* const mine = of_warp(warp);
    warp.exchange([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int i = 0; i < warp_rows / 2; ++i) mine[keys + of_entry(lane, i)] = sum[lane][i];
    });
  }

  /// The products of a warp's queries with a tile of keys and with the rows of their distances, of
  /// which those that are new stand in the ring `base` places further than at the start.
  INFTY_HOST_DEVICE void scores(const Warp& warp, State& state, int key, int base) const {
    Floats<keys / 2> fresh;
    by_distance(warp, state.q, wrapped(base + places - keys - warp.index() * warp_rows), fresh,
                again(key));
    float* const mine = of_warp(warp);
    warp.exchange([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int i = 0; i < warp_rows / 2; ++i)
        mine[of_entry(lane, i)] = mine[keys + of_entry(lane, i)];
      INFTY_OVER_REGISTERS
      for (int i = 0; i < keys / 2; ++i) mine[warp_rows + of_entry(lane, i)] = fresh[lane][i];
    });
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int i = 0; i < keys / 2; ++i) {
        const int row = entry_of_sum(lane, i % 4).row;
        state.p[lane][i] = mine[of_entry(lane, i) + warp_rows - 1 - row];
      }
    });
    add_products(
        warp, state.q, [&](int tile) { return k + 8 * tile * leading; }, state.p, again(base));
  }

  /// Turns scores into weights relative to the row's largest so far, and what was summed with them.
  INFTY_HOST_DEVICE void weigh(const Warp& warp, State& state, int key) const {
    const int i0 = query(warp);
    const bool all = key >= begin && key + keys - 1 <= attention.memory() + i0;
    Floats<2> top;
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int side = 0; side < 2; ++side) top[lane][side] = state.top[lane][side];
      INFTY_OVER_REGISTERS
      for (int i = 0; i < keys / 2; ++i) {
        const Entry at = entry_of_sum(lane, i % 4);
        float& p = state.p[lane][i];
        p *= attention.factor;
        if (!all && !attention.visible(i0 + at.row, key + i / 4 * 8 + at.column, begin))
          p = -math::infinity<float>;
        float& most = top[lane][i % 4 / 2];
        most = most > p ? most : p;
      }
    });
    warp.fold_quads(top, Larger{});
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int side = 0; side < 2; ++side) {
        // Of a row that has seen nothing yet all weights are exp(-infinity).
        const float largest = top[lane][side];
        const float base = largest == -math::infinity<float> ? 0 : largest;
        const float scale = math::exp_decay(state.top[lane][side] - base);
        state.top[lane][side] = largest;
        float sum = 0;
        INFTY_OVER_REGISTERS
        for (int i = 0; i < keys / 2; ++i)
          if (i % 4 / 2 == side) sum += state.p[lane][i] = math::exp_decay(state.p[lane][i] - base);
        state.sum[lane][side] = state.sum[lane][side] * scale + sum;
        INFTY_OVER_REGISTERS
        for (int i = 0; i < width / 2; ++i)
          if (i % 4 / 2 == side) state.out[lane][i] *= scale;
      }
    });
  }

  /// Adds the weighted values. Of every 32 columns a lane reads 4 neighbours, from 4 (lane / 4) on:
  /// one for each of four products of 8 columns.
  INFTY_HOST_DEVICE void add_values(const Warp& warp, State& state) const {
    INFTY_OVER_REGISTERS
    for (int step = 0; step < keys / 8; ++step) {
      Tf32Words<Warp, parts, 4> a;
      take_left(warp, a, [&](int lane, int i) { return state.p[lane][4 * step + i]; });
      INFTY_OVER_REGISTERS
      for (int c = 0; c < width / 32; ++c) {
        Floats<8> four_columns;
        warp.lanes([&](int lane) {
          const float* const from =
              v + (8 * step + lane % 4 * 2) * of_values + 32 * c + lane / 4 * 4;
          INFTY_OVER_REGISTERS
          for (int i = 0; i < 2; ++i) {
            const Four<float> x = load_four(from + i * of_values);
            INFTY_OVER_REGISTERS
            for (int l = 0; l < 4; ++l) four_columns[lane][2 * l + i] = x.x[l];
          }
        });
        INFTY_OVER_REGISTERS
        for (int l = 0; l < 4; ++l) {
          Tf32Words<Warp, parts, 2> value;
          take_right(warp, value, [&](int lane, int i) { return four_columns[lane][2 * l + i]; });
          multiply_add(warp, state.out, 4 * (4 * c + l), a, value);
        }
      }
    }
  }

  /// Writes y and log_sum: of every 32 columns a lane has 8 neighbours, from 8 (lane % 4) on.
  INFTY_HOST_DEVICE void end(const Warp& warp, State& state, float* y, float* log_sum,
                             bool wide) const {
    const AttentionSize& s = attention.size;
    warp.fold_quads(state.sum, Plus{});
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int side = 0; side < 2; ++side) {
        const int i = query(warp) + lane / 4 + side * 8;
        if (i >= last) continue;
        const float total = state.sum[lane][side], share = 1 / total;
        float* const to = y + (b * s.queries + i) * s.model() + h * s.head_dim;
        INFTY_OVER_REGISTERS
        for (int c = 0; c < width / 16; ++c) {
          const int column = c / 2 * 32 + lane % 4 * 8 + c % 2 * 4;
          Four<float> x;
          INFTY_OVER_REGISTERS
          for (int l = 0; l < 4; ++l)
            x.x[l] = state.out[lane][4 * (c / 2 * 4 + l) + 2 * side + c % 2] * share;
          if (wide) {
            if (column < attention.head_dim()) *reinterpret_cast<Four<float>*>(to + column) = x;
          } else {
            INFTY_OVER_REGISTERS
            for (int l = 0; l < 4; ++l)
              if (column + l < attention.head_dim()) to[column + l] = x.x[l];
          }
        }
        if (lane % 4 == 0)
          log_sum[(b * s.queries + i) * s.heads + h] = state.top[lane][side] + std::log(total);
      }
    });
  }

 private:
  /// `tf32_half`, for no x is negative; but no compiler knows that, and so none keeps queries in
  /// TF32 from one product to the next, for which a lane of wide heads has not enough registers.
  INFTY_HOST_DEVICE static std::uint32_t again(int x) {
    if constexpr (parts == 1 || width < 128) return tf32_half;
    return tf32_half + static_cast<std::uint32_t>(x >> 31);
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
  /// Four columns of a vector, zeros from D on.
  INFTY_HOST_DEVICE Four<float> four(const float* x, int column) const {
    const int d = attention.head_dim();
    Four<float> out{};
    if (attention.wide) {
      if (column < d) out = load_four(x + column);
    } else {
      INFTY_OVER_REGISTERS
      for (int l = 0; l < 4; ++l)
        if (column + l < d) out.x[l] = x[column + l];
    }
    return out;
  }

  INFTY_HOST_DEVICE void start(Block& block, const float* from, int at, int count, int from_row,
                               float* to, int step, int place, int all) const {
    constexpr int bytes = sizeof(float);
    const AttentionSize& s = attention.size;
    block.template start<width * bytes>(
        {from + h * s.head_dim, s.model() * bytes, attention.head_dim() * bytes, attention.wide, at,
         from_row, attention.count_keys(), count, to, step * bytes, place, all});
  }

  /// sum (16, 8 n) = bias + q rᵀ for the 8 n rows of r from a place on, a multiple of 16.
  template <int N>
  INFTY_HOST_DEVICE void by_distance(const Warp& warp, const Floats<width / 2>& q, int place,
                                     Floats<N>& sum, std::uint32_t round = tf32_half) const {
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int i = 0; i < N; ++i)
        sum[lane][i] = bias[wrapped(place + i / 4 * 8) + entry_of_sum(lane, i % 4).column];
    });
    add_products(
        warp, q, [&](int tile) { return r + wrapped(place + 8 * tile) * leading; }, sum, round);
  }

  /// sum (16, 8 n) += q xᵀ, eight rows of x at rows(tile).
  template <int N, class Rows>
  INFTY_HOST_DEVICE static void add_products(const Warp& warp, const Floats<width / 2>& q,
                                             const Rows& rows, Floats<N>& sum,
                                             std::uint32_t round = tf32_half) {
    INFTY_OVER_REGISTERS
    for (int c = 0; c < width / 16; ++c) {
      Tf32Words<Warp, parts, 4> a[2];
      INFTY_OVER_REGISTERS
      for (int step = 0; step < 2; ++step)
        take_left(
            warp, a[step], [&](int lane, int i) { return q[lane][8 * c + 4 * step + i]; }, round);
      INFTY_OVER_REGISTERS
      for (int tile = 0; tile < N / 4; ++tile) {
        Floats<4> x;
        warp.lanes([&](int lane) {
          const Four<float> four =
              load_four(rows(tile) + lane / 4 * leading + 16 * c + lane % 4 * 4);
          INFTY_OVER_REGISTERS
          for (int l = 0; l < 4; ++l) x[lane][l] = four.x[l];
        });
        INFTY_OVER_REGISTERS
        for (int step = 0; step < 2; ++step) {
          Tf32Words<Warp, parts, 2> right;
          take_right(warp, right, [&](int lane, int i) { return x[lane][2 * step + i]; });
          multiply_add(warp, sum, 4 * tile, a[step], right);
        }
      }
    }
  }
};

}  // namespace infty::detail
