// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/kernel/expectation.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/query_order.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/scratch.hpp>
#include <infty/eigen/tile_factors.hpp>
#include <infty/eigen/transpose.hpp>
#include <infty/signal/density.hpp>

namespace infty::detail {

/// The expectation of the value signal by tiles of queries and blocks of basis functions: the
/// expectations of a tile and a block, [block, tile], stay in cache and are never written out. A
/// tile holds queries that look at neighbouring places, and functions that are too far from all of
/// them to count are left out (`QueryOrder`). Rows, heads and, going forward, tiles in parallel.
template <class D>
struct FusedExpectation {
  static constexpr Index tile = 64, block = 128;

  template <class T, class Psi>
  static void forward(const ReadSize& s, const Psi& psi, const T* density, const T* values,
                      T* out) {
    with_factors<T>(true, [&](auto how) { forward_by(how, s, psi, density, values, out); });
  }

  /// The same by tiles of such factors.
  template <class Factors, class T, class Psi>
  static void forward_by(Factors how, const ReadSize& s, const Psi& psi, const T* density,
                         const T* values, T* out) {
    const Index e = s.heads * s.head_dim, N = s.basis, width = s.head_dim;
    const Index of_values = how.room(width, block), of_block = how.room(tile, block);
    const Index tiles = (s.queries + tile - 1) / tile;
    const QueryOrder<D, T, Psi> order(s, psi, density, tile);
    parallel_for(s.batch * s.heads * tiles, 1, [&](Index begin, Index end) {
      Scratch<T> scratch(tile * (block + 2 * width) + of_values + of_block +
                         Tile<T, Psi>::size(psi));
      T *const r = scratch.data(), *const sum = r + tile * block;  // [block, tile], [D, tile]
      T *const turned = sum + width * tile, *const left = turned + width * tile,
               *const right = left + of_values;
      for (Index job = begin; job < end; ++job) {
        const Index head = job / tiles % s.heads, row = job / tiles / s.heads;
        const Tile<T, Psi> at(s, psi, order, density, job / tiles, job % tiles * tile,
                              right + of_block);
        const T* const v = values + row * N * e + head * width;
        std::fill_n(sum, width * tile, T(0));
        for (Index j = at.functions.begin; j < at.functions.end; j += block) {
          const Index n = (std::min)(block, at.functions.end - j);
          at.each(psi, j, n, [=](Index k, Index, Expectation<T> x) { r[k] = x.value; });
          how.multiply(width, at.count, n, how.left(width, n, {v + j * e, 1, e}, left),
                       how.right(n, at.count, {r, tile}, right), true, sum, tile);
        }
        transpose(width, at.count, sum, tile, turned, width);
        for (Index i = 0; i < at.count; ++i) {
          T* const to = out + (row * s.queries + at.query[i]) * e + head * width;
          const T* const of_query = turned + i * width;
          for (Index d = 0; d < width; ++d) to[d] = s.adds ? to[d] + of_query[d] : of_query[d];
        }
      }
    });
  }

  template <class T, class Psi>
  static void backward(const ReadSize& s, const Psi& psi, const T* density, const T* values,
                       const T* d_out, T* d_density, T* d_values) {
    with_factors<T>(true, [&](auto how) {
      backward_by(how, s, psi, density, values, d_out, d_density, d_values);
    });
  }

  /// The same by tiles of such factors.
  template <class Factors, class T, class Psi>
  static void backward_by(Factors how, const ReadSize& s, const Psi& psi, const T* density,
                          const T* values, const T* d_out, T* d_density, T* d_values) {
    const Index e = s.heads * s.head_dim, N = s.basis, width = s.head_dim;
    const Index wide = padded<T>(width), all = s.batch * s.heads * s.queries;
    const QueryOrder<D, T, Psi> order(s, psi, density, tile);
    // Tiles of one row and head add to the same values: they run one after the other.
    parallel_for(s.batch * s.heads, 1, [&](Index begin, Index end) {
      const Index of_left = (std::max)(how.room(block, width), how.room(block, tile)),
                  of_across = how.room(tile, width), of_along = how.room(wide, tile);
      Scratch<T> scratch(tile * (2 * block + width + wide) + N * wide + of_left + of_across +
                         of_along + Tile<T, Psi>::size(psi));
      T *const r = scratch.data(), *const dr = r + tile * block;                // [block, tile]
      T* const across = dr + tile * block;                                      // d_out, [D, tile]
      T *const along = across + tile * width, *const dv = along + tile * wide;  // [tile, D], [N, D]
      T* const left = dv + N * wide;
      T *const for_across = left + of_left, *const for_along = for_across + of_across;
      std::fill_n(along, tile * wide, T(0));
      for (Index job = begin; job < end; ++job) {
        const Index head = job % s.heads, row = job / s.heads;
        const T* const v = values + row * N * e + head * width;
        if (d_values) std::fill_n(dv, N * wide, T(0));
        for (Index first = 0; first < s.queries; first += tile) {
          const Tile<T, Psi> at(s, psi, order, density, job, first, for_along + of_along);
          for (Index i = 0; i < at.count; ++i) {
            const T* const from = d_out + (row * s.queries + at.query[i]) * e + head * width;
            std::copy_n(from, width, along + i * wide);
          }
          transpose(at.count, width, along, wide, across, tile);
          const Panel<T> right_across = how.right(width, at.count, {across, tile}, for_across),
                         right_along = how.right(at.count, width, {along, wide}, for_along);
          T d_mu[tile] = {}, d_var[tile] = {};
          for (Index j = at.functions.begin; j < at.functions.end; j += block) {
            const Index n = (std::min)(block, at.functions.end - j);
            if (d_density) {
              how.multiply(n, at.count, width, how.left(n, width, {v + j * e, e, 1}, left),
                           right_across, false, dr, tile);
              at.each(
                  psi, j, n,
                  [=, to_mu = &d_mu[0], to_var = &d_var[0]](Index k, Index i, Expectation<T> x) {
                    r[k] = x.value;
                    to_mu[i] += dr[k] * x.d_mu;
                    to_var[i] += dr[k] * x.d_var;
                  });
            } else {
              at.each(psi, j, n, [=](Index k, Index, Expectation<T> x) { r[k] = x.value; });
            }
            if (d_values)
              how.multiply(n, width, at.count, how.left(n, at.count, {r, tile, 1}, left),
                           right_along, true, dv + j * wide, wide);
          }
          if (d_density)
            for (Index i = 0; i < at.count; ++i) {
              d_density[job * s.queries + at.query[i]] += d_mu[i];
              d_density[all + job * s.queries + at.query[i]] += d_var[i];
            }
        }
        if (d_values)
          for (Index j = 0; j < N; ++j)
            for (Index d = 0; d < width; ++d)
              d_values[(row * N + j) * e + head * width + d] += dv[j * wide + d];
      }
    });
  }

 private:
  /// Some queries of one row and head, their densities, and the functions that count for them.
  template <class T, class Psi>
  struct Tile {
    Index count;
    const Index* query;
    FunctionRange functions;
    T mu[tile], var[tile];
    T* spread;  ///< [widths, tile] where functions of one width share a part of the work

    Tile(const ReadSize& s, const Psi& psi, const QueryOrder<D, T, Psi>& order, const T* density,
         Index row_and_head, Index first, T* memory)
        : count((std::min)(tile, s.queries - first)),
          query(order.queries(row_and_head) + first),
          spread(memory) {
      const T* const at = density + row_and_head * s.queries;
      for (Index i = 0; i < count; ++i) {
        mu[i] = at[query[i]];
        var[i] = at[s.batch * s.heads * s.queries + query[i]];
      }
      functions = order.functions(psi, mu, var, count);
      if constexpr (spreads)
        for (Index w = 0; w < psi.widths(); ++w)
          for (Index i = 0; i < count; ++i)
            spread[w * tile + i] = D::inverse_spread(psi, w, var[i]);
    }

    static constexpr bool spreads =
        requires(const Psi& psi, T x) { D::inverse_spread(psi, Index{}, x); };
    static Index size(const Psi& psi) {
      if constexpr (spreads)
        return psi.widths() * tile;
      else
        return (void)psi, 0;
    }

    /// take(k, i, E) for the expectations of functions first, first + 1, ... and all queries i,
    /// which stand at k = tile * (j - first) + i. One function at a time over the queries: its
    /// centre and width stay in registers and a compiler makes vector code of the inner loop.
    template <class Take>
    void each(const Psi& functions_of, Index first, Index n, const Take& take_it) const {
      const Psi psi = functions_of;  // where no output can lie over it
      const Take take = take_it;
      for (Index j = 0; j < n; ++j) {
        if constexpr (spreads) {
          const T* const inverse = spread + (first + j) % psi.widths() * tile;
          INFTY_INDEPENDENT_LOOP
          for (Index i = 0; i < count; ++i)
            take(j * tile + i, i, D::expectation_gradient_at(psi, first + j, mu[i], inverse[i]));
        } else {
          INFTY_INDEPENDENT_LOOP
          for (Index i = 0; i < count; ++i)
            take(j * tile + i, i, D::expectation_gradient(psi, first + j, mu[i], var[i]));
        }
      }
    }
  };
};

}  // namespace infty::detail
