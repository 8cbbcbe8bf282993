// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <infty/core/config.hpp>
#include <infty/core/kernel/attention.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/eigen/panel.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/tile_factors.hpp>

namespace infty::detail {

/// How many queries and keys meet at once, and the distances between them, with room for a vector.
struct AttentionTiling {
  static constexpr Index query_tile = 64, key_tile = 256, band = query_tile + key_tile + 16;
};

/// A tile of queries of one row and head, with the scratch memory that it works in.
template <class Factors>
struct QueryTile : AttentionTiling {
  using T = typename Factors::Scalar;

  Factors factors;
  Index batch_row, head, first, count;  ///< of its queries
  Index head_dim, model, queries, width;
  T factor;
  T *qu, *qw;         ///< [query_tile, D], (q + u) / sqrt(D) and (q + w) / sqrt(D)
  T *out, *position;  ///< [query_tile, width]
  T* scores;          ///< [query_tile, key_tile]
  T* distance;   ///< [query_tile, band], scores and then gradients by distance: of query i and key
                 ///< j in column count - i + j
  T *top, *sum;  ///< [query_tile]
  TileView<T> by_key, by_distance;  ///< qu and qw as left factors

  static Index size(Index head_dim) {
    return query_tile * (2 * head_dim + 2 * padded<T>(head_dim) + key_tile + band + 2) +
           2 * Factors::room(query_tile, head_dim);
  }

  QueryTile(Factors how, const AttentionSize& s, const AttentionInputs<T>& in, Index row,
            Index head_, Index first_, T* memory)
      : factors(how),
        batch_row(row),
        head(head_),
        first(first_),
        count((std::min)(query_tile, s.queries - first_)),
        head_dim(s.head_dim),
        model(s.model()),
        queries(s.queries),
        width(padded<T>(s.head_dim)),
        factor(T(1) / std::sqrt(static_cast<T>(s.head_dim))),
        qu(memory),
        qw(qu + query_tile * head_dim),
        out(qw + query_tile * head_dim),
        position(out + query_tile * width),
        scores(position + query_tile * width),
        distance(scores + query_tile * key_tile),
        top(distance + query_tile * band),
        sum(top + query_tile) {
    const T *const q = of_queries(in.q), *const u = in.u + head * head_dim,
                   *const w = in.w + head * head_dim;
    for (Index i = 0; i < count; ++i)
      for (Index d = 0; d < head_dim; ++d) {
        qu[i * head_dim + d] = (q[i * model + d] + u[d]) * factor;
        qw[i * head_dim + d] = (q[i * model + d] + w[d]) * factor;
      }
    T* const room = sum + query_tile;
    by_key = how.left(count, head_dim, {qu, head_dim, 1}, room);
    by_distance =
        how.left(count, head_dim, {qw, head_dim, 1}, room + Factors::room(query_tile, head_dim));
  }

  /// Its part of a matrix [B, L, H D].
  template <class P>
  P* of_queries(P* x) const {
    return x + (batch_row * queries + first) * model + head * head_dim;
  }
  /// The place of its first query in a matrix [B, L, H].
  Index of_heads(const AttentionSize& s) const {
    return (batch_row * queries + first) * s.heads + head;
  }

  /// Moves what stands by distance behind a whole tile of keys to where the next tile's begins:
  /// first gradients that are not summed yet, then scores that it has in common with that one.
  void carry_band() const {
    for (Index i = 0; i < count; ++i)
      std::copy_n(distance + i * band + key_tile, count, distance + i * band);
  }

  /// Scores that fill vectors, so that no loop over them has a remainder: their number, and the
  /// largest of them.
  struct Finished {
    Index whole;
    T top;
  };

  /// The scores of the keys that query i sees, in place, and -infinity behind them.
  Finished finish_scores(Index i, Index visible) const {
    using S = Simd<T>;
    const Index whole = (visible + row_lanes - 1) / row_lanes * row_lanes;
    if (whole == 0) return {0, -math::infinity<T>};
    T* const x = scores + i * key_tile;
    const T* const distant = distance + i * band + count - i;
    const Index last = whole - row_lanes;
    for (Index j = last; j < whole; ++j)
      x[j] = j < visible ? x[j] + distant[j] : -math::infinity<T>;
    typename S::Vector most = S::load(x + last);
    for (Index j = last + S::width; j < whole; j += S::width)
      most = S::larger(most, S::load(x + j));
    for (Index j = 0; j < last; j += S::width) {
      const typename S::Vector score = S::load(x + j) + S::load(distant + j);
      S::store(x + j, score);
      most = S::larger(most, score);
    }
    return {whole, S::largest(most)};
  }

  /// Turns query i's finished scores into exp(score - of), in one pass, and returns their sum, that
  /// of `row_sum`.
  T exponentials(Index i, Index whole, T of) const {
    T* const x = scores + i * key_tile;
    T lane[row_lanes] = {};
    for (Index j = 0; j < whole; j += row_lanes) {
      INFTY_INDEPENDENT_LOOP
      for (Index l = 0; l < row_lanes; ++l) {
        x[j + l] = math::exp_of_share(x[j + l] - of);
        lane[l] += x[j + l];
      }
    }
    return join_lanes<row_lanes / 2>(lane, [](T a, T b) { return a + b; });
  }
};

/// The factors that a tile of queries is in a backward pass, beside those of its scores.
template <class Factors>
struct TurnedQueries : AttentionTiling {
  using T = typename Factors::Scalar;
  TileView<T> d_out, d_out_across, qu, qw;  ///< [count, D], and [D, count] for the others
  T* room;                                  ///< for those of a tile of keys

  static Index size(Index head_dim) {
    return Factors::room(query_tile, head_dim) + 3 * Factors::room(head_dim, query_tile) +
           Factors::room(band, query_tile) + Factors::room(query_tile, band);
  }

  TurnedQueries(const QueryTile<Factors>& tile, const T* dy, T* memory) {
    const Index D = tile.head_dim, e = tile.model, n = tile.count;
    T* to = memory;
    const auto next = [&](Index m, Index k, TileView<T> view) {
      T* const here = to;
      to += Factors::room(m, k);
      return tile.factors.left(m, k, view, here);
    };
    d_out = next(n, D, {dy, e, 1});
    d_out_across = next(D, n, {dy, 1, e});
    qu = next(D, n, {tile.qu, 1, D});
    qw = next(D, n, {tile.qw, 1, D});
    room = to;
  }
};

/// Keys [begin, begin + count) as a tile of queries meets them.
template <class Factors>
struct KeyTile : AttentionTiling {
  using T = typename Factors::Scalar;

  Index begin, count, wide;  ///< wide: with padding
  bool first, last;          ///< of those that the tile of queries meets
  Index row;                 ///< of r for column 0 of what stands by distance; -1: it is empty
  Index end;                 ///< of the columns
  Index fresh;               ///< the first one whose scores the tile before it did not leave
  Index done;                ///< to those in front of it no later tile adds gradients
  Stairs seen;               ///< the keys that each query sees
  Stairs near_enough;        ///< the columns of what stands by distance that any key has

  /// @param start, stop  the keys that the tile of queries meets
  KeyTile(const AttentionSize& s, const QueryTile<Factors>& tile, Index begin_, Index start,
          Index stop)
      : begin(begin_),
        count((std::min)(key_tile, stop - begin)),
        wide(padded<T>(count)),
        first(begin == start),
        last(begin + count == stop),
        row(s.queries - tile.first - tile.count + begin - 1),
        end((std::min)(tile.count + count, s.distances() - row)),
        fresh(first ? 0 : tile.count),
        done(last ? end : key_tile),
        seen{.right = s.memory() + tile.first + 1 - begin},
        near_enough{.left = tile.count - fresh} {}

  /// How many of the keys query i of the tile sees.
  Index visible(Index i) const { return std::clamp<Index>(seen.right + i, 0, count); }

  /// The two products of the scores: by key, and by those distances that the tile before it has not
  /// left.
  void products(const QueryTile<Factors>& tile, Panel<T> k, Panel<T> r) const {
    const Index D = tile.head_dim;
    tile.factors.multiply(tile.count, count, D, tile.by_key, {k.data + begin, k.stride}, false,
                          tile.scores, key_tile, StairsOfResult(seen));
    if (!first) tile.carry_band();
    if (end > fresh)
      tile.factors.multiply(tile.count, end - fresh, D, tile.by_distance,
                            {r.data + row + fresh, r.stride}, false, tile.distance + fresh, band,
                            StairsOfResult(near_enough));
  }
};

}  // namespace infty::detail
