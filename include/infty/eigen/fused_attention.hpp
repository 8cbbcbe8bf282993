// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include <infty/core/math.hpp>
#include <infty/core/row.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/scratch.hpp>

namespace infty::detail {

/// One head's columns of a matrix as the right operands of products: `across`, [D, rows], where its
/// rows are summed with queries, and `along`, [rows, D], where its columns are wanted. Both are
/// padded with zeros.
template <class T>
struct HeadPanels {
  T *across, *along;
  Index stride, width;  ///< elements between two rows of `across` and of `along`

  /// A place for `rows` rows of D columns, in `memory` of `size`.
  HeadPanels(Index rows, Index head_dim, T* memory)
      : across(memory),
        along(memory + head_dim * stride_of(rows)),
        stride(stride_of(rows)),
        width(padded<T>(head_dim)) {}

  static Index stride_of(Index rows) { return padded<T>(rows) + Simd<T>::width; }
  static Index size(Index rows, Index head_dim) {
    return head_dim * stride_of(rows) + stride_of(rows) * padded<T>(head_dim);
  }

  /// Copies a head of x [rows, ...], whose rows are `leading` elements apart.
  void fill(Index rows, Index head_dim, const T* x, Index leading) {
    std::fill_n(across, head_dim * stride + stride * width, T(0));
    constexpr Index block = Simd<T>::width;
    for (Index first = 0; first < rows; first += block) {
      const Index end = std::min(rows, first + block);
      for (Index row = first; row < end; ++row)
        std::copy_n(x + row * leading, head_dim, along + row * width);
      for (Index d = 0; d < head_dim; ++d)
        for (Index row = first; row < end; ++row) across[d * stride + row] = x[row * leading + d];
    }
  }
};

/// Attention with relative positions by tiles of queries and keys that stay in cache: no score is
/// written to memory, and the backward pass computes them once more from `log_sum`
/// [Dao et al. 2022, "FlashAttention", alg. 1]. The score of query i and key j, at distance row
/// c = L - 1 - i + j, is (q_i + u) · k_j + (q_i + w) · r_c, with both sums divided by sqrt(D)
/// before they are multiplied.
struct FusedAttention {
  static constexpr bool keeps_result = true;
  static constexpr Index query_tile = 64, key_tile = 256, band = query_tile + key_tile;

  template <class Size, class Inputs, class T>
  static void forward(const Size& s, const Inputs& in, T* y, T* log_sum) {
    const Index tiles = (s.queries + query_tile - 1) / query_tile, heads = s.batch * s.heads;
    const Panels<T> r(s, in.r, s.heads), k(s, in.k, heads), v(s, in.v, heads);
    parallel_for(heads * tiles, 1, [&](Index begin, Index end) {
      Scratch<T> scratch(Tile<T>::size(s.head_dim));
      for (Index job = begin; job < end; ++job) {
        const Index pair = job / tiles, head = pair % s.heads, row = pair / s.heads;
        const Tile<T> tile(s, in, row, head, job % tiles * query_tile, scratch.data());
        forward_tile(s, in, tile, k[pair], v[pair], r[head], y, log_sum);
      }
    });
  }

  template <class Size, class Inputs, class T, class Gradients>
  static void backward(const Size& s, const Inputs& in, const T* y, const T* log_sum, const T* dy,
                       const Gradients& to) {
    const Index e = s.model(), D = s.head_dim, part = s.keys * e;
    const Panels<T> r(s, in.r, s.heads);
    // Rows of the batch add to the same r, u and w: each has a part of its own.
    Scratch<T> dr(to.r ? s.batch * part : 0), du(s.batch * e), dw(s.batch * e);
    parallel_for(s.batch * s.heads, 1, [&](Index begin, Index end) {
      const Index panels = HeadPanels<T>::size(s.keys, D),
                  sum = D * HeadPanels<T>::stride_of(s.keys);
      Scratch<T> scratch(Tile<T>::size(D) + 2 * panels + 3 * sum);
      for (Index job = begin; job < end; ++job) {
        const Index head = job % s.heads, row = job / s.heads, column = head * D;
        T* const memory = scratch.data() + Tile<T>::size(D);
        HeadPanels<T> k(s.keys, D, memory), v(s.keys, D, memory + panels);
        k.fill(s.keys, D, in.k + row * part + column, e);
        v.fill(s.keys, D, in.v + row * part + column, e);
        T* const sums = memory + 2 * panels;
        const Sums<T> d{sums, sums + sum, sums + 2 * sum};  // of k, v and r, [D, K]
        std::fill_n(sums, 3 * sum, T(0));
        T *const d_u = du.data() + row * e + column, *const d_w = dw.data() + row * e + column;
        std::fill_n(d_u, D, T(0));
        std::fill_n(d_w, D, T(0));
        for (Index first = 0; first < s.queries; first += query_tile) {
          const Tile<T> tile(s, in, row, head, first, scratch.data());
          backward_tile(s, in, tile, k, v, r[head], y, log_sum, dy, d, to.q, d_u, d_w);
        }
        if (to.k) add_across(s.keys, D, d.k, k.stride, to.k + row * part + column, e);
        if (to.v) add_across(s.keys, D, d.v, k.stride, to.v + row * part + column, e);
        if (to.r) {
          T* const mine = dr.data() + row * part + column;
          for (Index c = 0; c < s.keys; ++c) std::fill_n(mine + c * e, D, T(0));
          add_across(s.keys, D, d.r, k.stride, mine, e);
        }
      }
    });
    if (to.r) add_rows(s.batch, part, dr.data(), to.r);
    if (to.u) add_rows(s.batch, e, du.data(), to.u);
    if (to.w) add_rows(s.batch, e, dw.data(), to.w);
  }

 private:
  /// The panels of all heads of x [count / H, K, H D].
  template <class T>
  class Panels {
   public:
    template <class Size>
    Panels(const Size& s, const T* x, Index count)
        : rows_(s.keys),
          head_dim_(s.head_dim),
          memory_(count * HeadPanels<T>::size(rows_, head_dim_)) {
      const Index e = s.model(), heads = s.heads;
      parallel_for(count, 1, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i)
          (*this)[i].fill(rows_, head_dim_, x + i / heads * rows_ * e + i % heads * head_dim_, e);
      });
    }
    HeadPanels<T> operator[](Index i) const {
      return HeadPanels<T>(rows_, head_dim_,
                           memory_.data() + i * HeadPanels<T>::size(rows_, head_dim_));
    }

   private:
    Index rows_, head_dim_;
    Scratch<T> memory_;
  };

  /// Gradients of one row and head, [D, K] each.
  template <class T>
  struct Sums {
    T *k, *v, *r;
  };

  /// A tile of queries of one row and head, with the scratch memory that it works in.
  template <class T>
  struct Tile {
    Index batch_row, head, first, count;  ///< of its queries
    Index head_dim, model, queries, width;
    T factor;
    T *qu, *qw;            ///< [query_tile, D], (q + u) / sqrt(D) and (q + w) / sqrt(D)
    T *out, *position;     ///< [query_tile, width]
    T *scores, *gradient;  ///< [query_tile, key_tile]
    T* distance;           ///< [query_tile, band], scores and then gradients by distance
    T *top, *sum;          ///< [query_tile]

    static Index size(Index head_dim) {
      return query_tile * (2 * head_dim + 2 * padded<T>(head_dim) + 2 * key_tile + band + 2);
    }

    template <class Size, class Inputs>
    Tile(const Size& s, const Inputs& in, Index row, Index head_, Index first_, T* memory)
        : batch_row(row),
          head(head_),
          first(first_),
          count(std::min(query_tile, s.queries - first_)),
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
          gradient(scores + query_tile * key_tile),
          distance(gradient + query_tile * key_tile),
          top(distance + query_tile * band),
          sum(top + query_tile) {
      const T *const q = of_queries(in.q), *const u = in.u + head * head_dim,
                     *const w = in.w + head * head_dim;
      for (Index i = 0; i < count; ++i)
        for (Index d = 0; d < head_dim; ++d) {
          qu[i * head_dim + d] = (q[i * model + d] + u[d]) * factor;
          qw[i * head_dim + d] = (q[i * model + d] + w[d]) * factor;
        }
    }

    /// Its part of a matrix [B, L, H D].
    template <class P>
    P* of_queries(P* x) const {
      return x + (batch_row * queries + first) * model + head * head_dim;
    }
    /// The place of its first query in a matrix [B, L, H].
    template <class Size>
    Index of_heads(const Size& s) const {
      return (batch_row * queries + first) * s.heads + head;
    }
  };

  /// Keys [begin, begin + count) as a tile of queries meets them.
  template <class T>
  struct Meeting {
    Index begin, count, wide;              ///< wide: with padding
    Index distance, distances, wide_band;  ///< rows of r from the last query's first key on

    template <class Size>
    Meeting(const Size& s, const Tile<T>& tile, Index first, Index end)
        : begin(first),
          count(std::min(key_tile, end - first)),
          wide(padded<T>(count)),
          distance(s.queries - tile.first - tile.count + first),
          distances(std::min(tile.count + count - 1, s.keys - distance)),
          wide_band(padded<T>(distances)) {}

    /// How many of the keys query i of the tile sees.
    template <class Size>
    Index visible(const Size& s, const Tile<T>& tile, Index i) const {
      return std::clamp<Index>(s.memory() + tile.first + i + 1 - begin, 0, count);
    }
  };

  /// The two products of the scores: by key and by distance.
  template <class T>
  static void products(const Tile<T>& tile, const Meeting<T>& with, const HeadPanels<T>& k,
                       const HeadPanels<T>& r) {
    const Index D = tile.head_dim;
    product_in_cache(tile.count, with.count, D, TileView<T>{tile.qu, D, 1}, k.across + with.begin,
                     k.stride, false, tile.scores, key_tile);
    product_in_cache(tile.count, with.distances, D, TileView<T>{tile.qw, D, 1},
                     r.across + with.distance, r.stride, false, tile.distance, band);
  }

  /// The scores of the keys that query i sees, in place.
  template <class T>
  static T* finish_scores(const Tile<T>& tile, Index i, Index visible) {
    T* const x = tile.scores + i * key_tile;
    const T* const far = tile.distance + i * band + tile.count - 1 - i;
    for (Index j = 0; j < visible; ++j) x[j] += far[j];
    return x;
  }

  template <class Size, class Inputs, class T>
  static void forward_tile(const Size& s, const Inputs& in, const Tile<T>& tile,
                           const HeadPanels<T>& k, const HeadPanels<T>& v, const HeadPanels<T>& r,
                           T* y, T* log_sum) {
    const Index end = s.memory() + tile.first + tile.count;
    std::fill_n(tile.out, tile.count * tile.width, T(0));
    std::fill_n(tile.top, tile.count, -std::numeric_limits<T>::infinity());
    std::fill_n(tile.sum, tile.count, T(0));
    for (Index key = in.first_key(s, tile.batch_row); key < end; key += key_tile) {
      const Meeting<T> with(s, tile, key, end);
      products(tile, with, k, r);
      for (Index i = 0; i < tile.count; ++i) {
        const Index visible = with.visible(s, tile, i);
        T* const x = finish_scores(tile, i, visible);
        if (visible > 0) {
          const T before = tile.top[i];
          const T top = std::max(before, row_max<T>(visible, [=](Index j) { return x[j]; }));
          for (Index j = 0; j < visible; ++j) x[j] = math::exp_decay(x[j] - top);
          const T scale = math::exp(before - top);
          tile.sum[i] = tile.sum[i] * scale + row_sum<T>(visible, [=](Index j) { return x[j]; });
          tile.top[i] = top;
          if (scale != T(1))
            for (Index d = 0; d < tile.width; ++d) tile.out[i * tile.width + d] *= scale;
        }
        std::fill(x + visible, x + with.count, T(0));
      }
      product_in_cache(tile.count, tile.head_dim, with.count, TileView<T>{tile.scores, key_tile, 1},
                       v.along + with.begin * v.width, v.width, true, tile.out, tile.width);
    }
    T *const to = tile.of_queries(y), *const logs = log_sum + tile.of_heads(s);
    for (Index i = 0; i < tile.count; ++i) {
      const T inverse = T(1) / tile.sum[i];
      for (Index d = 0; d < tile.head_dim; ++d)
        to[i * tile.model + d] = tile.out[i * tile.width + d] * inverse;
      logs[i * s.heads] = tile.top[i] + std::log(tile.sum[i]);
    }
  }

  template <class Size, class Inputs, class T>
  static void backward_tile(const Size& s, const Inputs& in, const Tile<T>& tile,
                            const HeadPanels<T>& k, const HeadPanels<T>& v, const HeadPanels<T>& r,
                            const T* y, const T* log_sum, const T* dy, const Sums<T>& to, T* d_q,
                            T* d_u, T* d_w) {
    const Index e = tile.model, D = tile.head_dim, end = s.memory() + tile.first + tile.count;
    T *const content = tile.out, *const position = tile.position;  // d(q + u) and d(q + w)
    std::fill_n(content, tile.count * tile.width, T(0));
    std::fill_n(position, tile.count * tile.width, T(0));
    // d score = p (dp - dy · y)
    T* const mean = tile.top;
    const T *const out = tile.of_queries(y), *const d_out = tile.of_queries(dy),
                   *const logs = log_sum + tile.of_heads(s);
    for (Index i = 0; i < tile.count; ++i)
      mean[i] = row_sum<T>(D, [=](Index c) { return out[i * e + c] * d_out[i * e + c]; });
    for (Index key = in.first_key(s, tile.batch_row); key < end; key += key_tile) {
      const Meeting<T> with(s, tile, key, end);
      products(tile, with, k, r);
      product_in_cache(tile.count, with.count, D, TileView<T>{d_out, e, 1}, v.across + with.begin,
                       v.stride, false, tile.gradient, key_tile);
      for (Index i = 0; i < tile.count; ++i) {
        const Index visible = with.visible(s, tile, i);
        T *const x = finish_scores(tile, i, visible), *const g = tile.gradient + i * key_tile;
        const T log_of_sum = logs[i * s.heads], middle = mean[i];
        for (Index j = 0; j < visible; ++j) {
          x[j] = math::exp_decay(x[j] - log_of_sum);
          g[j] = x[j] * (g[j] - middle);
        }
        std::fill(x + visible, x + with.wide, T(0));
        std::fill(g + visible, g + with.wide, T(0));
        // The same by distance, over what the scores needed.
        const Index shift = tile.count - 1 - i, here = std::min(with.count, with.distances - shift);
        T* const far = tile.distance + i * band;
        std::fill(far, far + shift, T(0));
        std::copy_n(g, here, far + shift);
        std::fill(far + shift + here, far + with.wide_band, T(0));
      }
      const TileView<T> d_scores{tile.gradient, key_tile, 1}, d_far{tile.distance, band, 1};
      product_in_cache(D, with.count, tile.count, TileView<T>{d_out, 1, e}, tile.scores, key_tile,
                       true, to.v + with.begin, k.stride);
      product_in_cache(D, with.count, tile.count, TileView<T>{tile.qu, 1, D}, tile.gradient,
                       key_tile, true, to.k + with.begin, k.stride);
      product_in_cache(D, with.distances, tile.count, TileView<T>{tile.qw, 1, D}, tile.distance,
                       band, true, to.r + with.distance, k.stride);
      product_in_cache(tile.count, D, with.count, d_scores, k.along + with.begin * k.width, k.width,
                       true, content, tile.width);
      product_in_cache(tile.count, D, with.distances, d_far, r.along + with.distance * r.width,
                       r.width, true, position, tile.width);
    }
    T* const d_query = d_q ? tile.of_queries(d_q) : nullptr;
    for (Index i = 0; i < tile.count; ++i)
      for (Index d = 0; d < D; ++d) {
        const T a = content[i * tile.width + d] * tile.factor,
                b = position[i * tile.width + d] * tile.factor;
        if (d_query) d_query[i * e + d] += a + b;
        d_u[d] += a;
        d_w[d] += b;
      }
  }

  /// to (n, D), rows `leading` apart, += the transpose of from [D, n].
  template <class T>
  static void add_across(Index n, Index head_dim, const T* from, Index stride, T* to,
                         Index leading) {
    constexpr Index block = Simd<T>::width;
    for (Index first = 0; first < n; first += block)
      for (Index d = 0; d < head_dim; ++d)
        for (Index i = first; i < std::min(n, first + block); ++i)
          to[i * leading + d] += from[d * stride + i];
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
