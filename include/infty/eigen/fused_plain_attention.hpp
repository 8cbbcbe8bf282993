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
    const Index tiles = (s.queries + query_tile - 1) / query_tile, D = s.head_dim, e = s.model();
    const Index pairs = s.batch * s.heads, each = padded<T>(D) > D ? s.keys * padded<T>(D) : 0;
    // Values whose rows have to be padded are laid out once for all tiles of queries.
    Scratch<T> rows(pairs * each);
    Scratch<Panel<T>> values(pairs);
    parallel_for(pairs, 1, [&](Index begin, Index end) {
      for (Index pair = begin; pair < end; ++pair)
        values.data()[pair] =
            pack_along(s.keys, D, in.v + pair / s.heads * s.keys * e + pair % s.heads * D, e,
                       rows.data() + pair * each);
    });
    parallel_for(pairs * tiles, 1, [&](Index begin, Index end) {
      Scratch<T> scratch(Tile<T>::size(D));
      for (Index job = begin; job < end; ++job) {
        const Index pair = job / tiles;
        const Tile<T> tile(s, in, pair / s.heads, pair % s.heads, job % tiles * query_tile,
                           scratch.data());
        forward_tile(s, in, tile, values.data()[pair], y, log_sum);
      }
    });
  }

  template <class Size, class Inputs, class T, class Gradients>
  static void backward(const Size& s, const Inputs& in, const T* y, const T* log_sum, const T* dy,
                       const Gradients& to) {
    const Index D = s.head_dim, e = s.model(), panel = s.keys * padded<T>(D);
    parallel_for(s.batch * s.heads, 1, [&](Index begin, Index end) {
      Scratch<T> scratch(Tile<T>::size(D) + BackwardTile<T>::size(D) + 3 * panel);
      for (Index job = begin; job < end; ++job) {
        const Index row = job / s.heads, head = job % s.heads, at = row * s.keys * e + head * D;
        T* const of_tile = scratch.data() + Tile<T>::size(D);
        T* const of_head = of_tile + BackwardTile<T>::size(D);
        const Panel<T> keys = pack_along(s.keys, D, in.k + at, e, of_head);
        // [K, width]; null where it is not wanted
        T *const dk = to.k ? of_head + panel : nullptr, *const dv =
                                                            to.v ? of_head + 2 * panel : nullptr;
        std::fill_n(of_head + panel, 2 * panel, T(0));
        for (Index first = 0; first < s.queries; first += query_tile) {
          const Tile<T> tile(s, in, row, head, first, scratch.data());
          const BackwardTile<T> back(s, tile, y, log_sum, dy, of_tile);
          backward_tile(s, in, tile, back, keys, dk, dv, to.q);
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

  /// A tile of queries of one row and head, with the scratch memory that it works in.
  template <class T>
  struct Tile {
    Index batch_row, head, first, count;  ///< of its queries
    Index wide;                           ///< count with padding
    Index head_dim, model, width;         ///< width: D with padding
    T* across;                            ///< [D, query_tile], scale q turned, with zeros behind
    T* scores;                            ///< [key_tile, query_tile]
    T* out;                               ///< [query_tile, width]

    static Index size(Index head_dim) {
      return query_tile * (head_dim + key_tile + padded<T>(head_dim));
    }

    template <class Size, class Inputs>
    Tile(const Size& s, const Inputs& in, Index row, Index head_, Index first_, T* memory)
        : batch_row(row),
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
    /// Its key j as rows of a head's columns of x [B, K, H D].
    template <class Size>
    TileView<T> rows_of(const Size& s, const T* x, Index j) const {
      return {x + (batch_row * s.keys + j) * model + head * head_dim, model, 1};
    }
  };

  /// What the backward pass holds of a tile of queries beside it.
  template <class T>
  struct BackwardTile {
    T* scaled;    ///< [query_tile, width], scale q
    T* grad;      ///< [query_tile, width], dy
    T* across;    ///< [D, query_tile], dy turned
    T* d_scores;  ///< [key_tile, query_tile]
    T* log_sum;   ///< [query_tile], 0 for a query that sees no key
    T* mean;      ///< [query_tile], dy · y

    static Index size(Index head_dim) {
      return query_tile * (2 * padded<T>(head_dim) + head_dim + key_tile + 2);
    }

    template <class Size>
    BackwardTile(const Size& s, const Tile<T>& tile, const T* y, const T* logs, const T* dy,
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
    }
  };

  /// The scores of `keys` keys from `begin` on, -infinity where a query does not see the key.
  template <class Size, class Inputs, class T>
  static void score(const Size& s, const Inputs& in, const Tile<T>& tile, Index begin, Index keys) {
    product_in_cache(keys, tile.count, tile.head_dim, tile.rows_of(s, in.k, begin), tile.across,
                     query_tile, false, tile.scores, query_tile);
    const Index all_see = in.end_key(s, tile.first);  // keys before it
    for (Index j = std::max<Index>(0, all_see - begin); j < keys; ++j)
      std::fill_n(tile.scores + j * query_tile, (std::min)(tile.wide, begin + j + 1 - all_see),
                  -math::infinity<T>);
  }

  template <class Size, class Inputs, class T>
  static void forward_tile(const Size& s, const Inputs& in, const Tile<T>& tile, Panel<T> values,
                           T* y, T* log_sum) {
    constexpr T none = -math::infinity<T>;
    const Index wide = tile.wide, end = in.end_key(s, tile.first + tile.count - 1);
    T top[query_tile], sum[query_tile], part[query_tile], from[query_tile];
    std::fill_n(top, query_tile, none);
    std::fill_n(sum, query_tile, T(0));
    std::fill_n(tile.out, tile.count * tile.width, T(0));
    for (Index key = in.first_key(s, tile.batch_row); key < end; key += key_tile) {
      const Index keys = (std::min)(key_tile, end - key);
      score(s, in, tile, key, keys);
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
      product_in_cache(tile.count, tile.head_dim, keys, TileView<T>{tile.scores, 1, query_tile},
                       values.data + key * values.stride, values.stride, true, tile.out,
                       tile.width);
    }
    T *const to = tile.of_queries(s, y), *const logs = log_sum + tile.of_heads(s);
    for (Index i = 0; i < tile.count; ++i) {
      const T inverse = top[i] == none ? T(0) : T(1) / sum[i];
      for (Index d = 0; d < tile.head_dim; ++d)
        to[i * tile.model + d] = tile.out[i * tile.width + d] * inverse;
      logs[i * s.heads] = top[i] == none ? none : top[i] + std::log(sum[i]);
    }
  }

  template <class Size, class Inputs, class T>
  static void backward_tile(const Size& s, const Inputs& in, const Tile<T>& tile,
                            const BackwardTile<T>& back, Panel<T> keys_along, T* dk, T* dv,
                            T* d_query) {
    const Index wide = tile.wide, D = tile.head_dim, width = tile.width,
                end = in.end_key(s, tile.first + tile.count - 1);
    std::fill_n(tile.out, tile.count * width, T(0));  // dq / scale
    for (Index key = in.first_key(s, tile.batch_row); key < end; key += key_tile) {
      const Index keys = (std::min)(key_tile, end - key);
      score(s, in, tile, key, keys);
      product_in_cache(keys, tile.count, D, tile.rows_of(s, in.v, key), back.across, query_tile,
                       false, back.d_scores, query_tile);
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
      const TileView<T> p{tile.scores, query_tile, 1}, ds{back.d_scores, query_tile, 1};
      if (dv)
        product_in_cache(keys, D, tile.count, p, back.grad, width, true, dv + key * width, width);
      if (dk)
        product_in_cache(keys, D, tile.count, ds, back.scaled, width, true, dk + key * width,
                         width);
      if (d_query)
        product_in_cache(tile.count, D, keys, TileView<T>{back.d_scores, 1, query_tile},
                         keys_along.data + key * keys_along.stride, keys_along.stride, true,
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
