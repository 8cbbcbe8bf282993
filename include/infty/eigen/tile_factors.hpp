// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/eigen/pairs.hpp>
#include <infty/eigen/panel.hpp>
#include <infty/eigen/products.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/rounded_gemm.hpp>
#include <infty/eigen/rounded_tile.hpp>
#include <infty/eigen/scratch.hpp>
#include <infty/eigen/stairs.hpp>
#include <infty/eigen/tile_product.hpp>
#include <infty/eigen/tile_registers.hpp>
#include <infty/eigen/transpose.hpp>

// What the fused kernels multiply by: tiles whose factors are as they are, or rounded to bfloat16.
// Sums are floats in either way, and so is all that is not a product.
namespace infty::detail {

/// Factors as they are: a product sums over rows of its right factor where they lie in memory.
template <class T>
struct WholeFactors {
  using Scalar = T;
  static constexpr Index together = 1;  ///< elements that stand as one, in the order of k

  /// Rows that k of a right factor take.
  static constexpr Index rows(Index k) { return k; }
  /// Elements of memory that a factor of so many lines, laid out anew, takes.
  static constexpr Index room(Index, Index) { return 0; }

  /// A (m, k) as a left factor.
  static TileView<T> left(Index, Index, TileView<T> a, T*) { return a; }
  /// B (k, n), with room for padded(n) columns, as a right factor.
  static Panel<T> right(Index, Index, Panel<T> b, T*) { return b; }
  /// As `pack_across`.
  static Panel<T> across(Index rows, Index head_dim, const T* x, Index leading, T* to) {
    return pack_across(rows, head_dim, x, leading, to);
  }
  /// As `pack_along`.
  static Panel<T> along(Index rows, Index head_dim, const T* x, Index leading, T* to) {
    return pack_along(rows, head_dim, x, leading, to);
  }

  /// C (m, n) = A B, or += if `add`, as `product_in_cache`.
  template <class Part = WholeProduct>
  static void multiply(Index m, Index n, Index k, TileView<T> a, Panel<T> b, bool add, T* c,
                       Index ldc, const Part& part = {}) {
    product_in_cache(m, n, k, a, b.data, b.stride, add, c, ldc, part);
  }
};

/// Factors rounded to bfloat16: each is laid out in pairs of two that follow each other in the
/// order of k, from an even place of k on; the partner that an odd k lacks is 0.
template <bool dot>
struct RoundedFactorsBy {
  using Scalar = float;
  static constexpr Index together = 2;

  PairLayout of_left = left_layout<dot>();  ///< as the processor multiplies it

  /// Rows that k of a right factor take.
  static constexpr Index rows(Index k) { return (k + 1) / 2; }
  /// Elements of memory that a factor of so many lines takes, a left one in any layout; behind them
  /// the next one is aligned as they are.
  static constexpr Index room(Index lines, Index k) {
    return whole_tiles((std::max)(room_of(PairLayout::halves, lines, rows(k)),
                                  room_of(PairLayout::rows, lines, rows(k))));
  }

  /// A (m, k), whose rows or columns are elements that follow each other, as a left factor, in
  /// `to` of room(m, k).
  TileView<float> left(Index m, Index k, TileView<float> a, float* to) const {
    const bool along = a.column == 1;
    const auto pairs = laid_out(of_left, m, k, a.data, along ? a.row : a.column, along, to);
    if (along || of_left == PairLayout::rows) return {to, pairs.leading, 1};
    return {to, 1, pairs.leading};
  }
  /// B (k, n), with room for padded(n) columns, as a right factor, in `to` of room(padded(n), k).
  static Panel<float> right(Index k, Index n, Panel<float> b, float* to) {
    return {to, pairs_of(padded<float>(n), k, b.data, b.stride, false, to).leading};
  }
  /// As `pack_across`, in `to` of rows(D) * panel_stride(rows).
  static Panel<float> across(Index n, Index head_dim, const float* x, Index leading, float* to) {
    const Scratch<float> turned(room(n, head_dim));
    pairs_of(n, head_dim, x, leading, true, turned.data());
    return pack_across(n, rows(head_dim), turned.data(), rows(head_dim), to);
  }
  /// As `pack_along`, in `to` of rows(rows) * padded(D).
  static Panel<float> along(Index n, Index head_dim, const float* x, Index leading, float* to) {
    const Index width = padded<float>(head_dim);
    for (Index row = 0; row < n; row += 2) {
      float* const line = to + row / 2 * width;
      pairs_of(head_dim, (std::min)(Index{2}, n - row), x + row * leading, leading, false, line);
      std::fill(line + head_dim, line + width, 0.f);
    }
    return {to, width};
  }

  /// C (m, n) = A B, or += if `add`, for k elements of each, which are pairs.
  template <class Part = WholeProduct>
  void multiply(Index m, Index n, Index k, TileView<float> a, Panel<float> b, bool add, float* c,
                Index ldc, const Part& part = {}) const {
    const JoinedTerms<together, Part> joined{part};
#if defined(INFTY_TILE_REGISTERS)
    if (of_left == PairLayout::rows)
      return tiles_in_cache(m, n, rows(k), a.data, a.row, b.data, b.stride, add, c, ldc, joined);
#endif
    if (of_left == PairLayout::joined)
      product_in_cache<DotTile>(m, n, rows(k), a, b.data, b.stride, add, c, ldc, joined);
    else
      product_in_cache<HalfTile>(m, n, rows(k), a, b.data, b.stride, add, c, ldc, joined);
  }
};

using RoundedFactors = RoundedFactorsBy<dot_here>;

/// Calls run(factors) with those that products are made of now, or with whole ones where a kernel
/// is not to round.
template <class T, class Run>
void with_factors(bool roundable, const Run& run) {
  if constexpr (std::is_same_v<T, float>)
    if (roundable && products() == Products::bfloat16) return run(RoundedFactors{});
  run(WholeFactors<T>{});
}

}  // namespace infty::detail
