// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <infty/core/kernel/plain_attention.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/eigen/fused_attention.hpp>
#include <infty/eigen/gemm.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/scratch.hpp>
#include <infty/eigen/tile_factors.hpp>

namespace infty::detail {

/// Attention without positions by tiles of queries and keys that stay in cache, the softmax going
/// along with the keys [Dao et al. 2022, "FlashAttention", alg. 1]. Scores stand with a row a key
/// and a column a query: then keys, values and their gradients are used as they lie in memory, only
/// the tile's few queries are turned, and all that a softmax does runs along queries, in vectors.
struct FusedPlainAttention {
  static constexpr bool keeps_result = true;
  static constexpr Index query_tile = 64, key_tile = 128;
  static constexpr Index few = 8;  ///< queries for which turning them would leave vectors empty

  template <class Size, class Inputs, class T>
  static void forward(const Size& s, const Inputs& in, T* y, T* log_sum) {
    if (s.queries <= few) return forward_few(s, in, y, log_sum);
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
      Scratch<T> scratch(Tile<Factors>::size(D) + how.room(query_tile, key_tile));
      for (Index job = begin; job < end; ++job) {
        const Index i = job / tiles;
        const Tile<Factors> tile(how, s, in, i / s.heads, i % s.heads, job % tiles * query_tile,
                                 scratch.data());
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
      Scratch<T> scratch(Tile<Factors>::size(D) + BackwardTile<Factors>::size(D) + 2 * panel +
                         along + 2 * of_keys);
      for (Index job = begin; job < end; ++job) {
        const Index row = job / s.heads, head = job % s.heads, at = row * s.keys * e + head * D;
        T* const of_tile = scratch.data() + Tile<Factors>::size(D);
        T* const of_head = of_tile + BackwardTile<Factors>::size(D);
        const Index odd = in.first_key(s, row) % how.together;
        const Known<T> known{
            how.left(s.keys, D, {in.k + at, e, 1}, of_head + 2 * panel + along),
            how.left(s.keys, D, {in.v + at, e, 1}, of_head + 2 * panel + along + of_keys),
            how.along(s.keys - odd, D, in.k + at + odd * e, e, of_head + 2 * panel), odd};
        // [K, width]; null where it is not wanted
        T *const dk = to.k ? of_head : nullptr, *const dv = to.v ? of_head + panel : nullptr;
        std::fill_n(of_head, 2 * panel, T(0));
        for (Index first = 0; first < s.queries; first += query_tile) {
          const Tile<Factors> tile(how, s, in, row, head, first, scratch.data());
          const BackwardTile<Factors> back(s, tile, y, log_sum, dy, of_tile);
          backward_tile(s, in, tile, back, known, dk, dv, to.q);
        }
        if (dk) add_rows(s.keys, D, dk, to.k + at, e);
        if (dv) add_rows(s.keys, D, dv, to.v + at, e);
      }
    });
  }

 private:
  /// Query by query, with keys and values where they stand: they are read once and little else is
  /// done.
  template <class Size, class Inputs, class T>
  static void forward_few(const Size& s, const Inputs& in, T* y, T* log_sum) {
    const Index e = s.model(), D = s.head_dim;
    using Row = Eigen::Map<Eigen::Matrix<T, 1, Eigen::Dynamic>>;
    using Column = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>>;
    parallel_for(s.batch * s.heads, 1, [&](Index begin, Index end) {
      Scratch<T> scratch(s.keys + D);
      T *const p = scratch.data(), *const query = p + s.keys;
      for (Index job = begin; job < end; ++job) {
        const Index head = job % s.heads, row = job / s.heads, first = in.first_key(s, row);
        for (Index i = 0; i < s.queries; ++i) {
          const Index at = (row * s.queries + i) * e + head * D, n = in.end_key(s, i) - first;
          T& log_of_sum = log_sum[(row * s.queries + i) * s.heads + head];
          if (n <= 0) {
            std::fill_n(y + at, D, T(0));
            log_of_sum = -math::infinity<T>;
            continue;
          }
          for (Index d = 0; d < D; ++d) query[d] = in.q[at + d] * in.scale;
          const auto rows = [&](const T* x) {
            return ConstStrided<T>(x + (row * s.keys + first) * e + head * D, n, D,
                                   Eigen::OuterStride<>(e));
          };
          Column(p, n).noalias() = rows(in.k) * Column(query, D);
          const T top = row_max<T>(n, [=](Index j) { return p[j]; });
          for (Index j = 0; j < n; ++j) p[j] = math::exp_decay(p[j] - top);
          const T sum = row_sum<T>(n, [=](Index j) { return p[j]; });
          Row(y + at, D).noalias() = Row(p, n) * rows(in.v);
          Row(y + at, D) /= sum;
          log_of_sum = top + std::log(sum);
        }
      }
    });
  }

  /// What a backward pass is given of one row and head.
  template <class T>
  struct Known {
    TileView<T> keys, values;  ///< [K, D]
    Panel<T> keys_along;
    Index first;  ///< key of keys_along
  };

  /// A tile of queries of one row and head, with the scratch memory that it works in.
  template <class Factors>
  struct Tile {
    using T = typename Factors::Scalar;

    Factors factors;
    Index batch_row, head, first, count;  ///< of its queries
    Index wide;                           ///< count with padding
    Index head_dim, model, width;         ///< width: D with padding
    T* across;                            ///< [D, query_tile], scale q turned, with zeros behind
    T* scores;                            ///< [key_tile, query_tile]
    T* out;                               ///< [query_tile, width]
    Panel<T> queries;                     ///< across as a right factor

    static Index size(Index head_dim) {
      return query_tile * (head_dim + key_tile + padded<T>(head_dim)) +
             Factors::room(query_tile, head_dim);
    }

    template <class Size, class Inputs>
    Tile(Factors how, const Size& s, const Inputs& in, Index row, Index head_, Index first_,
         T* memory)
        : factors(how),
          batch_row(row),
          head(head_),
          first(first_),
          count((std::min)(query_tile, s.queries - first_)),
          wide(padded<T>(count)),
          head_dim(s.head_dim),
          model(s.model()),
          width(padded<T>(s.head_dim)),
          across(memory),
          scores(across + query_tile * head_dim),
          out(scores + query_tile * key_tile) {
      turn(of_queries(s, in.q), across);
      for (Index i = 0; i < head_dim * query_tile; ++i) across[i] *= in.scale;
      queries = how.right(head_dim, query_tile, {across, query_tile}, out + query_tile * width);
    }

    /// to [D, query_tile] = the transpose of rows of queries, with zeros behind them.
    void turn(const T* from, T* to) const {
      transpose(count, head_dim, from, model, to, query_tile);
      for (Index d = 0; d < head_dim; ++d)
        std::fill(to + d * query_tile + count, to + (d + 1) * query_tile, T(0));
    }
    /// Its part of a matrix [B, L, H D].
    template <class Size, class P>
    P* of_queries(const Size& s, P* x) const {
      return x + (batch_row * s.queries + first) * model + head * head_dim;
    }
    /// The place of its first query in a matrix [B, L, H].
    template <class Size>
    Index of_heads(const Size& s) const {
      return (batch_row * s.queries + first) * s.heads + head;
    }
  };

  /// What the backward pass holds of a tile of queries beside it.
  template <class Factors>
  struct BackwardTile {
    using T = typename Factors::Scalar;

    T* scaled;                               ///< [query_tile, width], scale q
    T* grad;                                 ///< [query_tile, width], dy
    T* across;                               ///< [D, query_tile], dy turned
    Panel<T> of_scaled, of_grad, of_across;  ///< these as right factors
    T* room;                                 ///< for a left factor of the tile's scores
    T* d_scores;                             ///< [key_tile, query_tile]
    T* log_sum;                              ///< [query_tile], 0 for a query that sees no key
    T* mean;                                 ///< [query_tile], dy · y

    static Index size(Index head_dim) {
      return query_tile * (2 * padded<T>(head_dim) + head_dim + key_tile + 2) +
             2 * Factors::room(padded<T>(head_dim), query_tile) +
             Factors::room(query_tile, head_dim) + Factors::room(query_tile, key_tile) +
             Factors::room(key_tile, query_tile);
    }

    template <class Size>
    BackwardTile(const Size& s, const Tile<Factors>& tile, const T* y, const T* logs, const T* dy,
                 T* memory)
        : scaled(memory),
          grad(scaled + query_tile * tile.width),
          across(grad + query_tile * tile.width),
          d_scores(across + query_tile * tile.head_dim),
          log_sum(d_scores + query_tile * key_tile),
          mean(log_sum + query_tile) {
      const Index D = tile.head_dim, e = tile.model;
      const T *const from = tile.of_queries(s, dy), *const result = tile.of_queries(s, y);
      tile.turn(from, across);
      std::fill_n(scaled, 2 * query_tile * tile.width, T(0));
      transpose(D, tile.count, tile.across, query_tile, scaled, tile.width);
      std::fill_n(log_sum, 2 * query_tile, T(0));
      for (Index i = 0; i < tile.count; ++i) {
        std::copy_n(from + i * e, D, grad + i * tile.width);
        const T log_of_sum = logs[tile.of_heads(s) + i * s.heads];
        if (log_of_sum != -math::infinity<T>) log_sum[i] = log_of_sum;
        mean[i] = row_sum<T>(D, [=](Index c) { return from[i * e + c] * result[i * e + c]; });
      }
      T* const factors = mean + query_tile;
      const Index each = Factors::room(tile.width, query_tile);
      of_scaled = Factors::right(tile.count, tile.width, {scaled, tile.width}, factors);
      of_grad = Factors::right(tile.count, tile.width, {grad, tile.width}, factors + each);
      of_across = Factors::right(D, query_tile, {across, query_tile}, factors + 2 * each);
      room = factors + 2 * each + Factors::room(query_tile, D);
    }
  };

  /// The scores of `keys` keys from `begin` on, -infinity where a query does not see the key.
  template <class Size, class Inputs, class Factors, class T>
  static void score(const Size& s, const Inputs& in, const Tile<Factors>& tile, TileView<T> of_keys,
                    Index begin, Index keys) {
    tile.factors.multiply(keys, tile.count, tile.head_dim, from_row(of_keys, begin), tile.queries,
                          false, tile.scores, query_tile);
    const Index all_see = in.end_key(s, tile.first);  // keys before it
    for (Index j = std::max<Index>(0, all_see - begin); j < keys; ++j)
      std::fill_n(tile.scores + j * query_tile, (std::min)(tile.wide, begin + j + 1 - all_see),
                  -math::infinity<T>);
  }

  /// The rows of a left factor from `row` on.
  template <class T>
  static TileView<T> from_row(TileView<T> x, Index row) {
    return {x.data + row * x.row, x.row, x.column};
  }

  template <class Size, class Inputs, class Factors, class T>
  static void forward_tile(const Size& s, const Inputs& in, const Tile<Factors>& tile,
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
      score(s, in, tile, of_keys, key, keys);
      std::copy_n(top, query_tile, from);
      for (Index j = 0; j < keys; ++j) {
        const T* const x = tile.scores + j * query_tile;
        for (Index i = 0; i < wide; ++i) top[i] = x[i] > top[i] ? x[i] : top[i];
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
        for (Index i = 0; i < wide; ++i) {
          x[i] = math::exp_decay(x[i] - from[i]);
          part[i] += x[i];
        }
      }
      for (Index i = 0; i < wide; ++i) sum[i] += part[i];
      how.multiply(tile.count, tile.head_dim, keys,
                   how.left(tile.count, keys, {tile.scores, 1, query_tile}, room),
                   {values.data + how.rows(key - odd) * values.stride, values.stride}, true,
                   tile.out, tile.width);
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
  static void backward_tile(const Size& s, const Inputs& in, const Tile<Factors>& tile,
                            const BackwardTile<Factors>& back, const Known<T>& known, T* dk, T* dv,
                            T* d_query) {
    const Factors how = tile.factors;
    const Index wide = tile.wide, D = tile.head_dim, width = tile.width,
                end = in.end_key(s, tile.first + tile.count - 1);
    std::fill_n(tile.out, tile.count * width, T(0));  // dq / scale
    for (Index key = in.first_key(s, tile.batch_row); key < end; key += key_tile) {
      const Index keys = (std::min)(key_tile, end - key);
      score(s, in, tile, known.keys, key, keys);
      how.multiply(keys, tile.count, D, from_row(known.values, key), back.of_across, false,
                   back.d_scores, query_tile);
      for (Index j = 0; j < keys; ++j) {
        T *const x = tile.scores + j * query_tile, *const g = back.d_scores + j * query_tile;
        const T *const log_of_sum = back.log_sum, *const mean = back.mean;
        INFTY_INDEPENDENT_LOOP
        for (Index i = 0; i < wide; ++i) {
          // Scores of 1e30 may lie above the sum that the forward pass rounded in its own way.
          const T below = x[i] - log_of_sum[i];
          x[i] = math::exp_decay(below > T(0) ? T(0) : below);
          g[i] = x[i] * (g[i] - mean[i]);
        }
      }
      const auto add_to_keys = [&](T* by_key, Panel<T> right, T* to) {
        how.multiply(keys, D, tile.count,
                     how.left(keys, tile.count, {by_key, query_tile, 1}, back.room), right, true,
                     to + key * width, width);
      };
      if (dv) add_to_keys(tile.scores, back.of_grad, dv);
      if (dk) add_to_keys(back.d_scores, back.of_scaled, dk);
      const Panel<T> along = known.keys_along;
      if (d_query)
        how.multiply(tile.count, D, keys,
                     how.left(tile.count, keys, {back.d_scores, 1, query_tile}, back.room),
                     {along.data + how.rows(key - known.first) * along.stride, along.stride}, true,
                     tile.out, width);
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
