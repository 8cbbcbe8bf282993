// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <infty/core/kernel/plain_attention.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/eigen/few_queries.hpp>
#include <infty/eigen/fused_attention.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/plain_query_tile.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/scratch.hpp>
#include <infty/eigen/tile_factors.hpp>

namespace infty::detail {

/// Attention without positions by tiles of queries and keys that stay in cache, the softmax going
/// along with the keys [Dao et al. 2022, "FlashAttention", alg. 1]. Scores stand with a row a key
/// and a column a query: then keys, values and their gradients are used as they lie in memory, only
/// the tile's few queries are turned, and all that a softmax does runs along queries, in vectors.
struct FusedPlainAttention : private PlainAttentionTiling {
  static constexpr bool keeps_result = true;
  static constexpr Index few = 8;  ///< queries for which turning them would leave vectors empty

  template <class Size, class Inputs, class T>
  static void forward(const Size& s, const Inputs& in, T* y, T* log_sum) {
    if (s.queries <= few) return attend_few_plainly(s, in, y, log_sum);
    with_factors<T>(true, [&](auto how) { forward_by(how, s, in, y, log_sum); });
  }

  /// The same by tiles of such factors, however few queries there are.
  template <class Factors, class Size, class Inputs, class T>
  static void forward_by(Factors how, const Size& s, const Inputs& in, T* y, T* log_sum) {
    const Index tiles = (s.queries + query_tile - 1) / query_tile, D = s.head_dim, e = s.model();
    const Index heads = s.batch * s.heads, of_keys = how.room(s.keys, D);
    const bool as_it_is = how.together == 1 && padded<T>(D) == D;
    const Index of_values = as_it_is ? 0 : how.rows(s.keys) * padded<T>(D);
    // What has to be laid out is so once for all tiles of queries.
    Scratch<T> rows(heads * (of_keys + of_values));
    Scratch<TileView<T>> keys(heads);
    Scratch<Panel<T>> values(heads);
    parallel_for(heads, 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Index row = i / s.heads, at = row * s.keys * e + i % s.heads * D;
        const Index odd = in.first_key(s, row) % how.together;
        T* const to = rows.data() + i * (of_keys + of_values);
        keys.data()[i] = how.left(s.keys, D, {in.k + at, e, 1}, to);
        values.data()[i] = how.along(s.keys - odd, D, in.v + at + odd * e, e, to + of_keys);
      }
    });
    parallel_for(heads * tiles, 1, [&](Index begin, Index end) {
      Scratch<T> scratch(PlainQueryTile<Factors>::size(D) + how.room(query_tile, key_tile));
      for (Index job = begin; job < end; ++job) {
        const Index i = job / tiles;
        const PlainQueryTile<Factors> tile(how, s, in, i / s.heads, i % s.heads,
                                           job % tiles * query_tile, scratch.data());
        forward_tile(s, in, tile, keys.data()[i], values.data()[i], y, log_sum,
                     scratch.data() + tile.size(D));
      }
    });
  }

  template <class Size, class Inputs, class T, class Gradients>
  static void backward(const Size& s, const Inputs& in, const T* y, const T* log_sum, const T* dy,
                       const Gradients& to) {
    with_factors<T>(s.queries > few,
                    [&](auto how) { backward_by(how, s, in, y, log_sum, dy, to); });
  }

  /// The same by tiles of such factors, whose forward pass was by them, too.
  template <class Factors, class Size, class Inputs, class T, class Gradients>
  static void backward_by(Factors how, const Size& s, const Inputs& in, const T* y,
                          const T* log_sum, const T* dy, const Gradients& to) {
    const Index D = s.head_dim, e = s.model(), panel = s.keys * padded<T>(D);
    const Index of_keys = how.room(s.keys, D), along = how.rows(s.keys) * padded<T>(D);
    parallel_for(s.batch * s.heads, 1, [&](Index begin, Index end) {
      Scratch<T> scratch(PlainQueryTile<Factors>::size(D) + PlainGradientTile<Factors>::size(D) +
                         2 * panel + along + 2 * of_keys);
      for (Index job = begin; job < end; ++job) {
        const Index row = job / s.heads, head = job % s.heads, at = row * s.keys * e + head * D;
        T* const of_tile = scratch.data() + PlainQueryTile<Factors>::size(D);
        T* const of_head = of_tile + PlainGradientTile<Factors>::size(D);
        const Index odd = in.first_key(s, row) % how.together;
        const Known<T> known{
            how.left(s.keys, D, {in.k + at, e, 1}, of_head + 2 * panel + along),
            how.left(s.keys, D, {in.v + at, e, 1}, of_head + 2 * panel + along + of_keys),
            how.along(s.keys - odd, D, in.k + at + odd * e, e, of_head + 2 * panel), odd};
        // [K, width]; null where it is not wanted
        T *const dk = to.k ? of_head : nullptr, *const dv = to.v ? of_head + panel : nullptr;
        std::fill_n(of_head, 2 * panel, T(0));
        for (Index first = 0; first < s.queries; first += query_tile) {
          const PlainQueryTile<Factors> tile(how, s, in, row, head, first, scratch.data());
          const PlainGradientTile<Factors> back(s, tile, y, log_sum, dy, of_tile);
          backward_tile(s, in, tile, back, known, dk, dv, to.q);
        }
        if (dk) add_rows(s.keys, D, dk, to.k + at, e);
        if (dv) add_rows(s.keys, D, dv, to.v + at, e);
      }
    });
  }

 private:
  /// What a backward pass is given of one row and head.
  template <class T>
  struct Known {
    TileView<T> keys, values;  ///< [K, D]
    Panel<T> keys_along;
    Index first;  ///< key of keys_along
  };

  /// The scores of `keys` keys from `begin` on, -infinity where a query does not see the key.
  /// Returns which of them each query sees.
  template <class Size, class Inputs, class Factors, class T>
  static Stairs score(const Size& s, const Inputs& in, const PlainQueryTile<Factors>& tile,
                      TileView<T> of_keys, Index begin, Index keys) {
    const Stairs seen{.right = in.end_key(s, tile.first) - begin};  // the first query's keys
    tile.factors.multiply(keys, tile.count, tile.head_dim, from_row(of_keys, begin), tile.queries,
                          false, tile.scores, query_tile, StairsOfTurnedResult(seen));
    for (Index j = std::max<Index>(0, seen.right); j < keys; ++j)
      std::fill_n(tile.scores + j * query_tile, seen.rows({j, j + 1}, tile.wide).begin,
                  -math::infinity<T>);
    return seen;
  }
  /// How many of the first queries, in whole vectors, do not see key j.
  template <class T>
  static Index blind(Stairs seen, Index j, Index wide) {
    return seen.rows({j, j + 1}, wide).begin / Simd<T>::width * Simd<T>::width;
  }

  /// The rows of a left factor from `row` on.
  template <class T>
  static TileView<T> from_row(TileView<T> x, Index row) {
    return {x.data + row * x.row, x.row, x.column};
  }

  template <class Size, class Inputs, class Factors, class T>
  static void forward_tile(const Size& s, const Inputs& in, const PlainQueryTile<Factors>& tile,
                           TileView<T> of_keys, Panel<T> values, T* y, T* log_sum, T* room) {
    const Factors how = tile.factors;
    const Index first = in.first_key(s, tile.batch_row), odd = first % how.together;
    constexpr T none = -math::infinity<T>;
    const Index wide = tile.wide, end = in.end_key(s, tile.first + tile.count - 1);
    T top[query_tile], sum[query_tile], part[query_tile], from[query_tile];
    std::fill_n(top, query_tile, none);
    std::fill_n(sum, query_tile, T(0));
    std::fill_n(tile.out, tile.count * tile.width, T(0));
    for (Index key = first; key < end; key += key_tile) {
      const Index keys = (std::min)(key_tile, end - key);
      const Stairs seen = score(s, in, tile, of_keys, key, keys);
      std::copy_n(top, query_tile, from);
      for (Index j = 0; j < keys; ++j) {
        const T* const x = tile.scores + j * query_tile;
        for (Index i = blind<T>(seen, j, wide); i < wide; ++i)
          top[i] = x[i] > top[i] ? x[i] : top[i];
      }
      for (Index i = 0; i < wide; ++i) {
        // Where no key was seen yet nothing is kept: -infinity - -infinity is no number.
        const T kept = top[i] == none ? T(1) : math::exp(from[i] - top[i]);
        sum[i] *= kept;
        part[i] = T(0);
        if (i < tile.count && kept != T(1))
          for (Index d = 0; d < tile.width; ++d) tile.out[i * tile.width + d] *= kept;
        from[i] = top[i] == none ? T(0) : top[i];
      }
      for (Index j = 0; j < keys; ++j) {
        T* const x = tile.scores + j * query_tile;
        const Index unseen = blind<T>(seen, j, wide);
        std::fill_n(x, unseen, T(0));
        for (Index i = unseen; i < wide; ++i) {
          x[i] = math::exp_of_share(x[i] - from[i]);
          part[i] += x[i];
        }
      }
      for (Index i = 0; i < wide; ++i) sum[i] += part[i];
      how.multiply(tile.count, tile.head_dim, keys,
                   how.left(tile.count, keys, {tile.scores, 1, query_tile}, room),
                   {values.data + how.rows(key - odd) * values.stride, values.stride}, true,
                   tile.out, tile.width, StairsOnTheLeft(seen));
    }
    T *const to = tile.of_queries(s, y), *const logs = log_sum + tile.of_heads(s);
    for (Index i = 0; i < tile.count; ++i) {
      const T inverse = top[i] == none ? T(0) : T(1) / sum[i];
      for (Index d = 0; d < tile.head_dim; ++d)
        to[i * tile.model + d] = tile.out[i * tile.width + d] * inverse;
      logs[i * s.heads] = top[i] == none ? none : top[i] + std::log(sum[i]);
    }
  }

  template <class Size, class Inputs, class Factors, class T>
  static void backward_tile(const Size& s, const Inputs& in, const PlainQueryTile<Factors>& tile,
                            const PlainGradientTile<Factors>& back, const Known<T>& known, T* dk,
                            T* dv, T* d_query) {
    const Factors how = tile.factors;
    const Index wide = tile.wide, D = tile.head_dim, width = tile.width,
                end = in.end_key(s, tile.first + tile.count - 1);
    std::fill_n(tile.out, tile.count * width, T(0));  // dq / scale
    for (Index key = in.first_key(s, tile.batch_row); key < end; key += key_tile) {
      const Index keys = (std::min)(key_tile, end - key);
      const Stairs seen = score(s, in, tile, known.keys, key, keys);
      how.multiply(keys, tile.count, D, from_row(known.values, key), back.of_across, false,
                   back.d_scores, query_tile, StairsOfTurnedResult(seen));
      for (Index j = 0; j < keys; ++j) {
        T *const x = tile.scores + j * query_tile, *const g = back.d_scores + j * query_tile;
        const T *const log_of_sum = back.log_sum, *const mean = back.mean;
        const Index unseen = blind<T>(seen, j, wide);
        std::fill_n(x, unseen, T(0));
        std::fill_n(g, unseen, T(0));
        INFTY_INDEPENDENT_LOOP
        for (Index i = unseen; i < wide; ++i) {
          // Scores of 1e30 may lie above the sum that the forward pass rounded in its own way.
          const T below = x[i] - log_of_sum[i];
          x[i] = math::exp_of_share(below > T(0) ? T(0) : below);
          g[i] = x[i] * (g[i] - mean[i]);
        }
      }
      const auto add_to_keys = [&](T* by_key, Panel<T> right, T* to) {
        how.multiply(keys, D, tile.count,
                     how.left(keys, tile.count, {by_key, query_tile, 1}, back.room), right, true,
                     to + key * width, width, TurnedStairsOnTheLeft(seen));
      };
      if (dv) add_to_keys(tile.scores, back.of_grad, dv);
      if (dk) add_to_keys(back.d_scores, back.of_scaled, dk);
      const Panel<T> along = known.keys_along;
      if (d_query)
        how.multiply(tile.count, D, keys,
                     how.left(tile.count, keys, {back.d_scores, 1, query_tile}, back.room),
                     {along.data + how.rows(key - known.first) * along.stride, along.stride}, true,
                     tile.out, width, StairsOnTheLeft(seen));
    }
    if (!d_query) return;
    T* const to = tile.of_queries(s, d_query);
    for (Index i = 0; i < tile.count; ++i)
      for (Index d = 0; d < D; ++d) to[i * tile.model + d] += tile.out[i * width + d] * in.scale;
  }

  /// to (rows, D), rows `leading` apart, += from (rows, D), rows padded.
  template <class T>
  static void add_rows(Index rows, Index head_dim, const T* from, T* to, Index leading) {
    const Index width = padded<T>(head_dim);
    for (Index i = 0; i < rows; ++i)
      for (Index d = 0; d < head_dim; ++d) to[i * leading + d] += from[i * width + d];
  }
};

}  // namespace infty::detail
