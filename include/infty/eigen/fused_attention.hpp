// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <infty/core/kernel/attention.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/eigen/few_queries.hpp>
#include <infty/eigen/panel.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/query_tile.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/scratch.hpp>
#include <infty/eigen/tile_factors.hpp>
#include <infty/eigen/transpose.hpp>

namespace infty::detail {

/// Attention with relative positions by tiles of queries and keys that stay in cache: no score is
/// written to memory, and the backward pass computes them once more from `log_sum`
/// [Dao et al. 2022, "FlashAttention", alg. 1]. The score of query i and key j, at distance row
/// c = L - 1 - i + j, is (q_i + u) · k_j + (q_i + w) · r_c, with both sums divided by sqrt(D)
/// before they are multiplied.
struct FusedAttention : private AttentionTiling {
  static constexpr bool keeps_result = true;
  static constexpr Index few = 4;  ///< queries for which laying out panels would cost most

  template <class T>
  static void forward(const AttentionSize& s, const AttentionInputs<T>& in, T* y, T* log_sum) {
    if (s.queries <= few) return attend_few(s, in, y, log_sum);
    with_factors<T>(true, [&](auto how) { forward_by(how, s, in, y, log_sum); });
  }

  /// The same by tiles of such factors, however few queries there are.
  template <class Factors, class T>
  static void forward_by(Factors how, const AttentionSize& s, const AttentionInputs<T>& in, T* y,
                         T* log_sum) {
    const Index tiles = (s.queries + query_tile - 1) / query_tile, heads = s.batch * s.heads;
    const auto across = [=](auto... of) { return how.across(of...); };
    const auto along = [=](auto... of) { return how.along(of...); };
    const Index r_size = size_of_r<T>(how, s),
                across_size = how.rows(s.head_dim) * panel_stride<T>(s.keys),
                along_size = how.rows(s.keys) * padded<T>(s.head_dim);
    const Panels<T> r(s, in.r, s.distances(), s.heads, r_size, second_column(across)),
        k(s, in.k, s.keys, heads, across_size, across),
        v(s, in.v, s.keys, heads, along_size, along,
          [&](Index pair) { return in.first_key(s, pair / s.heads) % how.together; });
    parallel_for(heads * tiles, 1, [&](Index begin, Index end) {
      Scratch<T> scratch(QueryTile<Factors>::size(s.head_dim) +
                         how.room(query_tile, AttentionTiling::key_tile));
      for (Index job = begin; job < end; ++job) {
        const Index pair = job / tiles, head = pair % s.heads, row = pair / s.heads;
        const QueryTile<Factors> tile(how, s, in, row, head, job % tiles * query_tile,
                                      scratch.data());
        forward_tile(s, in, tile, k[pair], v[pair], r[head], y, log_sum,
                     scratch.data() + tile.size(s.head_dim));
      }
    });
  }

  template <class T>
  static void backward(const AttentionSize& s, const AttentionInputs<T>& in, const T* y,
                       const T* log_sum, const T* dy, const AttentionGradients<T>& to,
                       const T* d_log_sum = nullptr) {
    with_factors<T>(s.queries > few,
                    [&](auto how) { backward_by(how, s, in, y, log_sum, dy, to, d_log_sum); });
  }

  /// The same by tiles of such factors, whose forward pass was by them, too.
  template <class Factors, class T>
  static void backward_by(Factors how, const AttentionSize& s, const AttentionInputs<T>& in,
                          const T* y, const T* log_sum, const T* dy,
                          const AttentionGradients<T>& to, const T* d_log_sum) {
    const Index e = s.model(), D = s.head_dim, part = s.keys * e, distances = s.distances();
    const auto pack_across = [=](auto... of) { return how.across(of...); };
    const auto pack_along = [=](auto... of) { return how.along(of...); };
    const Index stride = panel_stride<T>(s.keys), r_stride = panel_stride<T>(distances),
                across = how.rows(D) * stride, r_size = size_of_r<T>(how, s),
                along = how.rows(s.keys) * padded<T>(D),
                r_along_size = how.rows(distances) * padded<T>(D);
    // Where elements stand in pairs, these begin at an even row of r or at an odd one.
    constexpr bool pairs = how.together == 2;
    const Panels<T> r_across(s, in.r, distances, s.heads, r_size, second_column(pack_across)),
        r_along(s, in.r, distances, s.heads, r_along_size, pack_along),
        r_from_odd(s, in.r, distances, pairs ? s.heads : 0, r_along_size, pack_along,
                   [](Index) { return Index{1}; });
    // Rows of the batch add to the same r, u and w: each has a part of its own.
    Scratch<T> dr(to.r ? s.batch * distances * e : 0), du(s.batch * e), dw(s.batch * e);
    parallel_for(s.batch * s.heads, 1, [&](Index begin, Index end) {
      const Index of_sums = D * (2 * stride + r_stride) + Simd<T>::width;
      Scratch<T> scratch(QueryTile<Factors>::size(D) + 2 * across + of_sums + along +
                         TurnedQueries<Factors>::size(D));
      for (Index job = begin; job < end; ++job) {
        const Index head = job % s.heads, row = job / s.heads, column = head * D;
        const T *const keys = in.k + row * part + column, *const values =
                                                              in.v + row * part + column;
        T* const memory = scratch.data() + QueryTile<Factors>::size(D);
        T *const sums = memory + 2 * across, *const of_keys = sums + of_sums;
        const Index odd = in.first_key(s, row) % how.together;
        const Known<T> known{how.across(s.keys, D, keys, e, memory),
                             how.across(s.keys, D, values, e, memory + across),
                             r_across[head],
                             how.along(s.keys - odd, D, keys + odd * e, e, of_keys),
                             {r_along[head], pairs ? r_from_odd[head] : Panel<T>{}},
                             odd,
                             y,
                             log_sum,
                             dy,
                             d_log_sum};
        std::fill_n(sums, of_sums, T(0));
        T *const d_u = du.data() + row * e + column, *const d_w = dw.data() + row * e + column;
        std::fill_n(d_u, D, T(0));
        std::fill_n(d_w, D, T(0));
        const Sums<T> d{
            sums, sums + D * stride, sums + 2 * D * stride + 1, stride, r_stride, to.q, d_u, d_w};
        for (Index first = 0; first < s.queries; first += query_tile) {
          const QueryTile<Factors> tile(how, s, in, row, head, first, scratch.data());
          backward_tile(s, in, tile, known, d, of_keys + along);
        }
        if (to.k) add_turned(s.keys, D, d.k, stride, to.k + row * part + column, e);
        if (to.v) add_turned(s.keys, D, d.v, stride, to.v + row * part + column, e);
        if (to.r)
          transpose(D, distances, d.r, r_stride, dr.data() + row * distances * e + column, e);
      }
    });
    if (to.r) add_rows(s.batch, distances * e, dr.data(), to.r);
    if (to.u) add_rows(s.batch, e, du.data(), to.u);
    if (to.w) add_rows(s.batch, e, dw.data(), to.w);
  }

 private:
  /// What a backward pass is given of one row and head.
  template <class T>
  struct Known {
    Panel<T> k_across, v_across, r_across, k_along, r_along[2];
    Index first;  ///< key of k_along
    const T *y, *log_sum, *dy, *d_log_sum;
  };

  /// Where the gradients of one row and head are summed: [D, K] twice, rows `stride` apart, [D,
  /// distances], rows `r_stride` apart, then those of all queries, and [D].
  template <class T>
  struct Sums {
    T *k, *v, *r;
    Index stride, r_stride;
    T *q, *u, *w;
  };

  /// Elements that r takes, laid out across by `second_column`.
  template <class T, class Factors>
  static Index size_of_r(Factors how, const AttentionSize& s) {
    return how.rows(s.head_dim) * panel_stride<T>(s.distances()) + Simd<T>::width;
  }
  /// Packs r behind a column for the distance of row -1, which is none, so that tiles of keys begin
  /// where vectors do.
  template <class Pack>
  static auto second_column(const Pack& pack) {
    return [=](Index rows, Index head_dim, const auto* x, Index leading, auto* to) {
      to[0] = 0;
      return pack(rows, head_dim, x, leading, to + 1);
    };
  }

  template <class Factors, class T>
  static void forward_tile(const AttentionSize& s, const AttentionInputs<T>& in,
                           const QueryTile<Factors>& tile, Panel<T> k, Panel<T> v, Panel<T> r, T* y,
                           T* log_sum, T* room) {
    const Factors how = tile.factors;
    const Index first = in.first_key(s, tile.batch_row), odd = first % how.together;
    const Index end = in.end_key(s, tile.batch_row, tile.first + tile.count - 1);
    std::fill_n(tile.out, tile.count * tile.width, T(0));
    std::fill_n(tile.top, tile.count, -math::infinity<T>);
    std::fill_n(tile.sum, tile.count, T(0));
    for (Index key = first; key < end; key += key_tile) {
      const KeyTile<Factors> with(s, tile, key, first, end);
      with.products(tile, k, r);
      for (Index i = 0; i < tile.count; ++i) {
        T* const x = tile.scores + i * key_tile;
        const auto [whole, largest] = tile.finish_scores(i, with.visible(i));
        if (whole > 0) {
          const T before = tile.top[i];
          const T top = (std::max)(before, largest);
          const T sum = tile.exponentials(i, whole, top);
          tile.top[i] = top;
          if (before == -math::infinity<T>) {
            tile.sum[i] = sum;  // of the first keys; nothing is to be scaled
          } else {
            const T scale = math::exp(before - top);
            tile.sum[i] = tile.sum[i] * scale + sum;
            if (scale != T(1))
              for (Index d = 0; d < tile.width; ++d) tile.out[i * tile.width + d] *= scale;
          }
        }
        std::fill(x + whole, x + (std::max)(whole, with.count), T(0));
      }
      how.multiply(tile.count, tile.head_dim, with.count,
                   how.left(tile.count, with.count, {tile.scores, key_tile, 1}, room),
                   {v.data + how.rows(key - odd) * v.stride, v.stride}, true, tile.out, tile.width,
                   StairsOnTheLeft(with.seen));
    }
    T *const to = tile.of_queries(y), *const logs = log_sum + tile.of_heads(s);
    for (Index i = 0; i < tile.count; ++i) {
      const T inverse = T(1) / tile.sum[i];
      for (Index d = 0; d < tile.head_dim; ++d)
        to[i * tile.model + d] = tile.out[i * tile.width + d] * inverse;
      logs[i * s.heads] = tile.top[i] + std::log(tile.sum[i]);
    }
  }

  template <class Factors, class T>
  static void backward_tile(const AttentionSize& s, const AttentionInputs<T>& in,
                            const QueryTile<Factors>& tile, const Known<T>& known,
                            const Sums<T>& to, T* memory) {
    const Factors how = tile.factors;
    const Index e = tile.model, D = tile.head_dim, first = in.first_key(s, tile.batch_row),
                end = in.end_key(s, tile.batch_row, tile.first + tile.count - 1);
    T *const content = tile.out, *const position = tile.position;  // d(q + u) and d(q + w)
    std::fill_n(content, tile.count * tile.width, T(0));
    std::fill_n(position, tile.count * tile.width, T(0));
    // d score = p (dp - dy · y + d log_sum)
    T* const mean = tile.top;
    const T *const out = tile.of_queries(known.y), *const d_out = tile.of_queries(known.dy),
                   *const logs = known.log_sum + tile.of_heads(s);
    for (Index i = 0; i < tile.count; ++i)
      mean[i] = row_sum<T>(D, [=](Index c) { return out[i * e + c] * d_out[i * e + c]; });
    if (known.d_log_sum) {
      const T* const d_log = known.d_log_sum + tile.of_heads(s);
      for (Index i = 0; i < tile.count; ++i) mean[i] -= d_log[i * s.heads];
    }
    // Gradients stand by distance. Read with rows one element closer, from where the first query's
    // first key stands, the same memory is by key.
    const Index shifted = band - 1;
    T* const d_scores = tile.distance + tile.count;
    const TurnedQueries<Factors> turned(tile, d_out, memory);
    for (Index key = first; key < end; key += key_tile) {
      const KeyTile<Factors> with(s, tile, key, first, end);
      with.products(tile, known.k_across, known.r_across);
      for (Index i = 0; i < tile.count; ++i) {
        T* const x = tile.scores + i * key_tile;
        const Index whole = tile.finish_scores(i, with.visible(i)).whole;
        const T log_of_sum = logs[i * s.heads];
        for (Index j = 0; j < whole; ++j) {
          // Scores of 1e30 may lie above the sum that the forward pass rounded in its own way.
          const T below = x[j] - log_of_sum;
          x[j] = math::exp_of_share(below > T(0) ? T(0) : below);
        }
        std::fill(x + whole, x + (std::max)(whole, with.wide), T(0));
      }
      how.multiply(tile.count, with.count, D, turned.d_out,
                   {known.v_across.data + with.begin, known.v_across.stride}, false, d_scores,
                   shifted, StairsOfResult(with.seen));
      for (Index i = 0; i < tile.count; ++i) {
        const T* const x = tile.scores + i * key_tile;
        T *const g = d_scores + i * shifted, *const distant = tile.distance + i * band;
        const T middle = mean[i];
        const Index whole = padded<T>(with.visible(i));  // behind them nothing has been computed
        for (Index j = 0; j < whole; ++j) g[j] = x[j] * (g[j] - middle);
        std::fill(g + whole, (std::max)(g + whole, g + with.wide), T(0));
        if (with.first) std::fill(distant, g, T(0));
        if (with.last) std::fill(g + with.wide, (std::max)(g + with.wide, distant + band), T(0));
      }
      const Index keys = with.count, begin = with.begin, distance = with.row;
      T *const for_right = turned.room, *const for_left = for_right + how.room(band, query_tile);
      // += the product of what stands across and a tile's gradient, or of that and a panel.
      const auto add_across = [&](TileView<T> left, Index n, Panel<T> right, Stairs stairs, T* sum,
                                  Index stride) {
        how.multiply(D, n, tile.count, left, how.right(tile.count, n, right, for_right), true, sum,
                     stride, StairsOnTheRight(stairs));
      };
      const auto add_along = [&](Index n, Panel<T> left, Stairs stairs, Panel<T> panel, Index row,
                                 T* sum) {
        how.multiply(tile.count, D, n,
                     how.left(tile.count, n, {left.data, left.stride, 1}, for_left),
                     {panel.data + how.rows(row) * panel.stride, panel.stride}, true, sum,
                     tile.width, StairsOnTheLeft(stairs));
      };
      const Panel<T> by_key{d_scores, shifted}, by_distance{tile.distance, band};
      const Panel<T> probabilities{tile.scores, key_tile};
      add_across(turned.d_out_across, keys, probabilities, with.seen, to.v + begin, to.stride);
      add_across(turned.qu, keys, by_key, with.seen, to.k + begin, to.stride);
      add_across(turned.qw, with.done, by_distance, with.near_enough, to.r + distance, to.r_stride);
      add_along(keys, by_key, with.seen, known.k_along, begin - known.first, content);
      const Index none = distance < 0 ? 1 : 0, odd = (distance + none) % how.together;
      add_along(with.done - none, {tile.distance + none, band},
                {.left = with.near_enough.left - none}, known.r_along[odd], distance + none - odd,
                position);
    }
    T* const d_query = to.q ? tile.of_queries(to.q) : nullptr;
    for (Index i = 0; i < tile.count; ++i)
      for (Index d = 0; d < D; ++d) {
        const T a = content[i * tile.width + d] * tile.factor,
                b = position[i * tile.width + d] * tile.factor;
        if (d_query) d_query[i * e + d] += a + b;
        to.u[d] += a;
        to.w[d] += b;
      }
  }

  /// to (n) += the sum of `rows` rows of n, in their order.
  template <class T>
  static void add_rows(Index rows, Index n, const T* from, T* to) {
    parallel_for(n, 4096, [&](Index begin, Index end) {
      for (Index row = 0; row < rows; ++row)
        for (Index i = begin; i < end; ++i) to[i] += from[row * n + i];
    });
  }
};

}  // namespace infty::detail
