// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/config.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/eigen/panel.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/transpose.hpp>

namespace infty::detail {

/// How many queries and keys meet at once where there are no positions.
struct PlainAttentionTiling {
  static constexpr Index query_tile = 64, key_tile = 128;
};

/// A tile of queries of one row and head, with the scratch memory that it works in.
template <class Factors>
struct PlainQueryTile : PlainAttentionTiling {
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
  PlainQueryTile(Factors how, const Size& s, const Inputs& in, Index row, Index head_, Index first_,
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
struct PlainGradientTile : PlainAttentionTiling {
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
  PlainGradientTile(const Size& s, const PlainQueryTile<Factors>& tile, const T* y, const T* logs,
                    const T* dy, T* memory)
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

}  // namespace infty::detail
