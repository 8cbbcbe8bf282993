// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/core/config.hpp>
#include <infty/core/kernel/expectation.hpp>
#include <infty/core/number.hpp>
#include <infty/signal/basis.hpp>
#include <infty/thrust/fixed_divisor.hpp>
#include <infty/thrust/tile.hpp>
#include <infty/thrust/tile_product.hpp>

namespace infty::detail {

/// From `low` to `high`; nothing if low > high.
template <class N>
struct Span {
  N low, high;
};

/// Joins two of them to the least that holds both.
struct JoinSpans {
  template <class N>
  INFTY_HOST_DEVICE Span<N> operator()(const Span<N>& a, const Span<N>& b) const {
    return {a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
  }
};

/// What the kernels of `expected_values` share: tiles of as many queries as basis functions.
template <class Density, class T, class Psi>
struct ExpectationTiles {
  static constexpr int threads = 256;
  /// Whether functions of one width share a factor, and know the rest by their centre.
  static constexpr bool spreads = requires(const Psi& psi, T x) {
    Density::inverse_spread(psi, Index{}, x);
    Density::expectation_gradient_about(psi, x, x, x);
  };
  /// Whether functions can be so far from a density that they do not count.
  static constexpr bool has_reach = requires(const Psi& psi, T x) {
    Density::reach(psi, x, x);
    psi.centre(Index{});
  };

  ReadSize size;
  Psi psi;
  const T *density, *values;
  bool wide;  ///< all matrices are aligned for `load_four`
  int tile_rows;
  T tail;  ///< what part of its largest value an expectation may have and be left out
  FixedDivisor dims, pieces;      ///< D, and pieces of four in a row of a tile
  FixedDivisor across_functions;  ///< tile_rows

  INFTY_HOST_DEVICE int head_dim() const { return static_cast<int>(size.head_dim); }
  INFTY_HOST_DEVICE int padded_head_dim() const { return round_up_4(size.head_dim); }
  INFTY_HOST_DEVICE int leading() const { return tile_leading(size.head_dim); }
  INFTY_HOST_DEVICE int count_queries() const { return static_cast<int>(size.queries); }
  INFTY_HOST_DEVICE int count_basis() const { return static_cast<int>(size.basis); }
  INFTY_HOST_DEVICE int query_tiles() const {
    return (count_queries() + tile_rows - 1) / tile_rows;
  }
  INFTY_HOST_DEVICE int basis_tiles() const { return (count_basis() + tile_rows - 1) / tile_rows; }
  INFTY_HOST_DEVICE Index model() const { return size.heads * size.head_dim; }
  INFTY_HOST_DEVICE int widths() const {
    if constexpr (spreads)
      return static_cast<int>(psi.widths());
    else
      return 1;
  }

  /// Elements of a tile of vectors, and of expectations.
  INFTY_HOST_DEVICE Index vectors() const { return Index{tile_rows} * leading(); }
  INFTY_HOST_DEVICE Index expectations() const {
    return Index{tile_rows} * tile_leading(tile_rows);
  }

  /// Head h of the rows from `first` on of row b of a matrix [B, count, H D].
  INFTY_HOST_DEVICE TileSource<T> source(const T* from, int b, int h, int first, int count,
                                         T* tile) const {
    return {from + Index{b} * count * model() + h * size.head_dim,
            model(),
            head_dim(),
            wide,
            first,
            0,
            count,
            tile_rows,
            tile,
            pieces};
  }

  /// What a block knows of a tile of queries and of a tile of functions.
  struct Tables {
    T *mu, *var;  ///< [tile_rows], of the queries
    T* inverse;   ///< [tile_rows, widths], 1 / spread of the queries
    T* centre;    ///< [tile_rows], of the functions
    int* width;   ///< [tile_rows], which width the functions have
  };
  INFTY_HOST_DEVICE Index count_inverse() const { return Index{tile_rows} * widths(); }
  INFTY_HOST_DEVICE std::size_t table_bytes() const {
    const std::size_t densities = 2 * detail::shared_bytes<T>(tile_rows);
    if constexpr (spreads)
      return densities + detail::shared_bytes<T>(count_inverse()) +
             detail::shared_bytes<T>(tile_rows) + detail::shared_bytes<int>(tile_rows);
    else
      return densities;
  }
  template <class Block>
  INFTY_HOST_DEVICE Tables tables(Block& block) const {
    Tables t{block.template shared<T>(tile_rows), block.template shared<T>(tile_rows), nullptr,
             nullptr, nullptr};
    if constexpr (spreads) {
      t.inverse = block.template shared<T>(count_inverse());
      t.centre = block.template shared<T>(tile_rows);
      t.width = block.template shared<int>(tile_rows);
    }
    return t;
  }

  /// Fills in the queries from `first` on, then a barrier.
  template <class Block>
  INFTY_HOST_DEVICE void know_queries(Block& block, int b, int h, int first,
                                      const Tables& t) const {
    const T* const from = density + (b * size.heads + h) * size.queries;
    const Index n = size.batch * size.heads * size.queries;
    block.each(tile_rows, [&](int i) {
      const bool inside = first + i < count_queries();
      t.mu[i] = inside ? from[first + i] : T(0);
      t.var[i] = inside ? from[n + first + i] : T(1);
    });
    if constexpr (spreads)
      block.each(tile_rows * widths(), [&](int item) {
        const int i = item / widths(), w = item % widths();
        t.inverse[item] = Density::inverse_spread(psi, Index{w}, t.var[i]);
      });
  }
  /// Fills in the functions from `first` on, then a barrier.
  template <class Block>
  INFTY_HOST_DEVICE void know_functions(Block& block, int first, const Tables& t) const {
    if constexpr (spreads)
      block.each(tile_rows, [&](int j) {
        t.centre[j] = psi.centre(Index{first + j});
        t.width[j] = (first + j) % widths();
      });
  }

  /// E[psi_(basis + j)] of query i of the tile, and its gradient.
  INFTY_HOST_DEVICE Expectation<T> at(const Tables& t, int basis, int i, int j) const {
    if constexpr (spreads)
      return Density::expectation_gradient_about(psi, t.centre[j], t.mu[i],
                                                 t.inverse[i * widths() + t.width[j]]);
    else
      return Density::expectation_gradient(psi, Index{basis + j}, t.mu[i], t.var[i]);
  }
  /// p(i, j) = E[psi_j] of query i, zero where there is no such function or query, and a barrier.
  template <class Block>
  INFTY_HOST_DEVICE void expect(Block& block, int queries, int basis, const Tables& t, T* p) const {
    const int rows = tile_rows, leading_p = tile_leading(rows), step = rows / 4;
    block.each(step * rows, [&](int item) {
      const int first = across_functions.quotient(item), j = item - first * rows;
      for (int r = 0; r < 4; ++r) {
        const int i = first + r * step;
        const bool there = queries + i < count_queries() && basis + j < count_basis();
        p[i * leading_p + j] = there ? at(t, basis, i, j).value : T(0);
      }
    });
  }

  /// Where the centres lie of the functions that count for the queries from `first` on.
  template <class Block>
  INFTY_HOST_DEVICE Span<T> reached(Block& block, int first, const Tables& t) const {
    const Span<T> all{-math::infinity<T>, math::infinity<T>};
    if constexpr (has_reach)
      if (size.skip_tails) {
        const int left = count_queries() - first;
        return block.reduce(left < tile_rows ? left : tile_rows, Span<T>{all.high, all.low},
                            JoinSpans{}, [&](int i) {
                              const T reach = Density::reach(psi, t.var[i], tail);
                              const Span<T> span{t.mu[i] - reach, t.mu[i] + reach};
                              return math::is_finite(span.low) && math::is_finite(span.high) ? span
                                                                                             : all;
                            });
      }
    return all;
  }
  /// The centres of a tile of functions.
  INFTY_HOST_DEVICE Span<T> centres(int tile) const {
    if constexpr (has_reach) {
      const int end =
          (tile + 1) * tile_rows < count_basis() ? (tile + 1) * tile_rows : count_basis();
      return {psi.centre(Index{tile} * tile_rows), psi.centre(Index{end - 1})};
    } else {
      return {T(0), T(0)};
    }
  }
  /// Whether functions with such centres may count.
  INFTY_HOST_DEVICE static bool may_count(const Span<T>& centres, const Span<T>& reached) {
    return centres.high >= reached.low && centres.low <= reached.high;
  }
  /// The tiles of functions that may count: first and last.
  template <class Block>
  INFTY_HOST_DEVICE Span<int> tiles_of(Block& block, const Span<T>& reached) const {
    const Span<int> all{0, basis_tiles() - 1};
    if constexpr (has_reach)
      if (size.skip_tails)
        return block.reduce(
            basis_tiles(), Span<int>{all.high + 1, all.low - 1}, JoinSpans{}, [&](int tile) {
              return may_count(centres(tile), reached) ? Span<int>{tile, tile}
                                                       : Span<int>{all.high + 1, -1};
            });
    return all;
  }
};

}  // namespace infty::detail
