// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include <infty/core/math.hpp>
#include <infty/core/row.hpp>
#include <infty/eigen/linear_algebra.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/scratch.hpp>

namespace infty::detail {

/// Attention with relative positions by tiles of queries and keys that stay in cache: no score is
/// written to memory, and the backward pass computes them once more from `log_sum`
/// [Dao et al. 2022, "FlashAttention", alg. 1]. With q' = q + u, the score of query i and key j at
/// distance row c = L - 1 - i + j is factor (q'_i · k_j + q'_i · r_c + (w - u) · r_c).
struct FusedAttention {
  static constexpr bool keeps_result = true;
  static constexpr Index query_tile = 64, key_tile = 192;

  template <class Size, class Inputs, class T>
  static void forward(const Size& s, const Inputs& in, T* y, T* log_sum) {
    const Index tiles = (s.queries + query_tile - 1) / query_tile;
    Scratch<T> bias(s.heads * s.keys);
    position_bias(s, in, bias.data());
    parallel_for(s.batch * s.heads * tiles, 1, [&](Index begin, Index end) {
      const OneThread guard;
      Scratch<T> scratch(Tile<T>::size(s.head_dim));
      for (Index job = begin; job < end; ++job) {
        const Index head = job / tiles % s.heads, row = job / tiles / s.heads;
        Tile<T> tile(s, row, head, job % tiles * query_tile, scratch.data());
        tile.bias = bias.data() + head * s.keys;
        tile.add_to_queries(in.q, in.u);
        forward_tile(s, in, tile, y, log_sum);
      }
    });
  }

  template <class Size, class Inputs, class T, class Gradients>
  static void backward(const Size& s, const Inputs& in, const T* y, const T* log_sum, const T* dy,
                       const Gradients& to) {
    const Index e = s.model();
    Scratch<T> bias(s.heads * s.keys);
    position_bias(s, in, bias.data());
    // Rows of the batch add to the same r, u and w: each has a part of its own.
    Scratch<T> dr(to.r ? s.batch * s.keys * e : 0), du(s.batch * e), dw(s.batch * e);
    parallel_for(s.batch * s.heads, 1, [&](Index begin, Index end) {
      const OneThread guard;
      Scratch<T> scratch(Tile<T>::size(s.head_dim)), sums(2 * s.keys);
      for (Index job = begin; job < end; ++job) {
        const Index head = job % s.heads, row = job / s.heads, column = head * s.head_dim;
        T *const by_key = sums.data(), *const by_distance = by_key + s.keys;
        std::fill_n(by_key, 2 * s.keys, T(0));
        Strided<T> part(dr.data() + row * s.keys * e + column, to.r ? s.keys : 0, s.head_dim,
                        Eigen::OuterStride<>(e));
        part.setZero();
        for (Index first = 0; first < s.queries; first += query_tile) {
          Tile<T> tile(s, row, head, first, scratch.data());
          tile.bias = bias.data() + head * s.keys;
          tile.add_to_queries(in.q, in.u);
          backward_tile(s, in, tile, y, log_sum, dy, to, part, by_key, by_distance);
        }
        // d(q + u) is the sum of ds k, d(q + w) of ds r; the queries stood with u in dr.
        const auto heads = [&](const T* x) {
          return ConstStrided<T>(x + column, s.keys, s.head_dim, Eigen::OuterStride<>(e));
        };
        const Eigen::Map<const RowMajor<T>> keys(by_key, 1, s.keys), far(by_distance, 1, s.keys);
        Eigen::Map<RowMajor<T>>(du.data() + row * e + column, 1, s.head_dim).noalias() =
            keys * heads(in.k + row * s.keys * e);
        Eigen::Map<RowMajor<T>>(dw.data() + row * e + column, 1, s.head_dim).noalias() =
            far * heads(in.r);
        for (Index c = 0; c < part.rows(); ++c)
          for (Index d = 0; d < s.head_dim; ++d)
            part(c, d) += by_distance[c] * (in.w[column + d] - in.u[column + d]);
      }
    });
    if (to.r) add_rows(s.batch, s.keys * e, dr.data(), to.r);
    if (to.u) add_rows(s.batch, e, du.data(), to.u);
    if (to.w) add_rows(s.batch, e, dw.data(), to.w);
  }

 private:
  /// A tile of queries of one row and head, with the scratch memory that it works in.
  template <class T>
  struct Tile {
    Index batch_row, head, first, count;  ///< of its queries
    Index head_dim, model, queries_end;
    T factor;
    const T* bias = nullptr;  ///< [K], of its head
    T *q, *out;               ///< [query_tile, D]
    T *scores, *gradient;     ///< [query_tile, key_tile]
    T* band;                  ///< [query_tile, query_tile + key_tile], scores by distance
    T *top, *sum, *scale;     ///< [query_tile]

    static constexpr Index band_width = query_tile + key_tile;
    static Index size(Index head_dim) {
      return query_tile * (2 * head_dim + 2 * key_tile + band_width + 3);
    }

    template <class Size>
    Tile(const Size& s, Index batch_row_, Index head_, Index first_, T* memory)
        : batch_row(batch_row_),
          head(head_),
          first(first_),
          count(std::min(query_tile, s.queries - first_)),
          head_dim(s.head_dim),
          model(s.model()),
          queries_end(s.queries),
          factor(T(1) / std::sqrt(static_cast<T>(s.head_dim))),
          q(memory),
          out(q + query_tile * head_dim),
          scores(out + query_tile * head_dim),
          gradient(scores + query_tile * key_tile),
          band(gradient + query_tile * key_tile),
          top(band + query_tile * band_width),
          sum(top + query_tile),
          scale(sum + query_tile) {}

    /// Its part of a matrix [B, L, H D].
    template <class P>
    P* of_queries(P* x) const {
      return x + (batch_row * queries_end + first) * model + head * head_dim;
    }
    void add_to_queries(const T* queries, const T* u) {
      const T *const from = of_queries(queries), *const plus = u + head * head_dim;
      for (Index i = 0; i < count; ++i)
        for (Index d = 0; d < head_dim; ++d) q[i * head_dim + d] = from[i * model + d] + plus[d];
    }
    Strided<T> map(T* x, Index columns, Index leading) const {
      return Strided<T>(x, count, columns, Eigen::OuterStride<>(leading));
    }
  };

  /// Keys [begin, begin + count) as a tile of queries meets them.
  template <class T>
  struct Meeting {
    Index begin, count;
    Index distance, distances;  ///< rows of r from the last query's first key on
    ConstStrided<T> keys, values, positions;

    template <class Size, class Inputs>
    Meeting(const Size& s, const Inputs& in, const Tile<T>& tile, Index first, Index end)
        : begin(first),
          count(std::min(key_tile, end - first)),
          distance(s.queries - tile.first - tile.count + first),
          distances(std::min(tile.count + count - 1, s.keys - distance)),
          keys(head_of(s, tile, in.k + tile.batch_row * s.keys * s.model(), begin, count)),
          values(head_of(s, tile, in.v + tile.batch_row * s.keys * s.model(), begin, count)),
          positions(head_of(s, tile, in.r, distance, distances)) {}

    template <class Size>
    static ConstStrided<T> head_of(const Size& s, const Tile<T>& tile, const T* x, Index row,
                                   Index rows) {
      return ConstStrided<T>(x + row * s.model() + tile.head * s.head_dim, rows, s.head_dim,
                             Eigen::OuterStride<>(s.model()));
    }
    /// How many of the keys query i of the tile sees.
    template <class Size>
    Index visible(const Size& s, const Tile<T>& tile, Index i) const {
      return std::clamp<Index>(s.memory() + tile.first + i + 1 - begin, 0, count);
    }
  };

  /// bias [H, K] = (w - u) · r.
  template <class Size, class Inputs, class T>
  static void position_bias(const Size& s, const Inputs& in, T* bias) {
    const Index e = s.model();
    parallel_for(s.keys, 64, [&](Index begin, Index end) {
      for (Index c = begin; c < end; ++c)
        for (Index h = 0; h < s.heads; ++h) {
          const T *const r = in.r + c * e + h * s.head_dim, *const w = in.w + h * s.head_dim,
                         *const u = in.u + h * s.head_dim;
          bias[h * s.keys + c] =
              row_sum<T>(s.head_dim, [=](Index d) { return (w[d] - u[d]) * r[d]; });
        }
    });
  }

  /// scores = the two products, without bias and factor; the second one stays in the band.
  template <class T>
  static void products(const Tile<T>& tile, const Meeting<T>& with) {
    const Strided<T> q = tile.map(tile.q, tile.head_dim, tile.head_dim);
    tile.map(tile.scores, with.count, key_tile).noalias() = q * with.keys.transpose();
    tile.map(tile.band, with.distances, Tile<T>::band_width).noalias() =
        q * with.positions.transpose();
  }

  /// The score of every key that query i sees, in place.
  template <class T>
  static T* finish_scores(const Tile<T>& tile, const Meeting<T>& with, Index i, Index visible) {
    const Index shift = tile.count - 1 - i;
    T* const x = tile.scores + i * key_tile;
    const T *const by_distance = tile.band + i * Tile<T>::band_width + shift, *const bias =
                                                                                  tile.bias +
                                                                                  with.distance +
                                                                                  shift;
    const T factor = tile.factor;
    for (Index j = 0; j < visible; ++j) x[j] = factor * (x[j] + by_distance[j] + bias[j]);
    return x;
  }

  template <class Size, class Inputs, class T>
  static void forward_tile(const Size& s, const Inputs& in, const Tile<T>& tile, T* y, T* log_sum) {
    const Index end = s.memory() + tile.first + tile.count;
    Strided<T> out = tile.map(tile.out, tile.head_dim, tile.head_dim);
    out.setZero();
    std::fill_n(tile.top, tile.count, -std::numeric_limits<T>::infinity());
    std::fill_n(tile.sum, tile.count, T(0));
    for (Index key = in.first_key(s, tile.batch_row); key < end; key += key_tile) {
      const Meeting<T> with(s, in, tile, key, end);
      products(tile, with);
      for (Index i = 0; i < tile.count; ++i) {
        const Index visible = with.visible(s, tile, i);
        T* const x = finish_scores(tile, with, i, visible);
        if (visible > 0) {
          const T before = tile.top[i];
          const T top = std::max(before, row_max<T>(visible, [=](Index j) { return x[j]; }));
          for (Index j = 0; j < visible; ++j) x[j] = math::exp(x[j] - top);
          const T scale = math::exp(before - top);
          tile.sum[i] = tile.sum[i] * scale + row_sum<T>(visible, [=](Index j) { return x[j]; });
          tile.top[i] = top;
          if (scale != T(1)) out.row(i) *= scale;
        }
        std::fill(x + visible, x + with.count, T(0));
      }
      out.noalias() += tile.map(tile.scores, with.count, key_tile) * with.values;
    }
    T *const to = tile.of_queries(y), *const logs =
                                          log_sum +
                                          (tile.batch_row * s.queries + tile.first) * s.heads +
                                          tile.head;
    for (Index i = 0; i < tile.count; ++i) {
      const T inverse = T(1) / tile.sum[i];
      for (Index d = 0; d < s.head_dim; ++d)
        to[i * tile.model + d] = tile.out[i * s.head_dim + d] * inverse;
      logs[i * s.heads] = tile.top[i] + std::log(tile.sum[i]);
    }
  }

  template <class Size, class Inputs, class T, class Gradients>
  static void backward_tile(const Size& s, const Inputs& in, const Tile<T>& tile, const T* y,
                            const T* log_sum, const T* dy, const Gradients& to, Strided<T>& dr,
                            T* by_key, T* by_distance) {
    const Index e = tile.model, D = tile.head_dim, end = s.memory() + tile.first + tile.count;
    const ConstStrided<T> d_out(tile.of_queries(dy), tile.count, D, Eigen::OuterStride<>(e));
    const Strided<T> q = tile.map(tile.q, D, D);
    Strided<T> dq = tile.map(tile.out, D, D);
    dq.setZero();
    // d score = p (dp - dy · y)
    T* const delta = tile.top;
    const T *const out = tile.of_queries(y), *const d = tile.of_queries(dy);
    const T* const logs = log_sum + (tile.batch_row * s.queries + tile.first) * s.heads + tile.head;
    for (Index i = 0; i < tile.count; ++i)
      delta[i] = row_sum<T>(D, [=](Index c) { return out[i * e + c] * d[i * e + c]; });
    const auto head = [&](T* x, Index row, Index rows) {
      return Strided<T>(x + (tile.batch_row * s.keys + row) * e + tile.head * D, rows, D,
                        Eigen::OuterStride<>(e));
    };
    for (Index key = in.first_key(s, tile.batch_row); key < end; key += key_tile) {
      const Meeting<T> with(s, in, tile, key, end);
      products(tile, with);
      Strided<T> p = tile.map(tile.scores, with.count, key_tile);
      Strided<T> ds = tile.map(tile.gradient, with.count, key_tile);
      ds.noalias() = d_out * with.values.transpose();
      for (Index i = 0; i < tile.count; ++i) {
        const Index visible = with.visible(s, tile, i);
        T *const x = finish_scores(tile, with, i, visible), *const g = tile.gradient + i * key_tile;
        const T log_of_sum = logs[i * s.heads], mean = delta[i], factor = tile.factor;
        for (Index j = 0; j < visible; ++j) {
          x[j] = math::exp(x[j] - log_of_sum);
          g[j] = x[j] * (g[j] - mean) * factor;
        }
        std::fill(x + visible, x + with.count, T(0));
        std::fill(g + visible, g + with.count, T(0));
        // The same by distance, over what the scores needed.
        const Index shift = tile.count - 1 - i, here = std::min(with.count, with.distances - shift);
        T* const far = tile.band + i * Tile<T>::band_width;
        std::fill(far, far + shift, T(0));
        std::copy_n(g, here, far + shift);
        std::fill(far + shift + here, far + with.distances, T(0));
        for (Index j = 0; j < visible; ++j) by_key[with.begin + j] += g[j];
        for (Index j = 0; j < visible; ++j) by_distance[with.distance + shift + j] += g[j];
      }
      const Strided<T> by_row = tile.map(tile.band, with.distances, Tile<T>::band_width);
      if (to.v) head(to.v, with.begin, with.count).noalias() += p.transpose() * d_out;
      if (to.k) head(to.k, with.begin, with.count).noalias() += ds.transpose() * q;
      if (to.r) dr.middleRows(with.distance, with.distances).noalias() += by_row.transpose() * q;
      if (to.q) {
        dq.noalias() += ds * with.keys;
        dq.noalias() += by_row * with.positions;
      }
    }
    if (to.q) Strided<T>(tile.of_queries(to.q), tile.count, D, Eigen::OuterStride<>(e)) += dq;
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
