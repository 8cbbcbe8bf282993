// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>

#include <infty/core/config.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/tensor.hpp>
#include <infty/thrust/system.hpp>
#include <infty/thrust/tile.hpp>

namespace infty::detail {

/// take(piece, column, sum of term(row, column) over the rows of the piece) for all columns and
/// pieces of `piece` rows. A block sums one piece of 32 columns, which are neighbours in memory.
template <class V, class Term, class Take>
struct ReduceColumns {
  static constexpr int threads = 256, width = 32, lanes = threads / width;

  Index rows, columns, piece;
  Term term;
  Take take;

  Index blocks() const { return strips() * ((rows + piece - 1) / piece); }
  INFTY_HOST_DEVICE Index strips() const { return (columns + width - 1) / width; }
  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return detail::shared_bytes<V>(threads); }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    V* const sums = block.template shared<V>(threads);
    const Index at = block.index() / strips(), first = block.index() % strips() * width;
    const Index begin = at * piece, end = begin + piece < rows ? begin + piece : rows;
    block.each(threads, [&](int i) {
      const Index column = first + i % width;
      V sum{};
      if (column < columns)
        for (Index row = begin + i / width; row < end; row += lanes) sum = sum + term(row, column);
      sums[i] = sum;
    });
    block.each(width, [&](int i) {
      if (first + i >= columns) return;
      V sum = sums[i];
      for (int lane = 1; lane < lanes; ++lane) sum = sum + sums[lane * width + i];
      take(at, first + i, sum);
    });
  }
};

/// An element of a row-major matrix.
template <class V>
struct ElementAt {
  const V* x;
  Index columns;
  INFTY_HOST_DEVICE V operator()(Index row, Index column) const {
    return x[row * columns + column];
  }
};

/// Keeps the sums of a piece of rows.
template <class V>
struct KeepPartial {
  V* partial;
  Index columns;
  INFTY_HOST_DEVICE void operator()(Index piece, Index column, const V& sum) const {
    partial[piece * columns + column] = sum;
  }
};

/// take(0, column, sum over all rows of term(row, column)) for all columns: sums of pieces of rows
/// first, then the sums of these, in an order that the sizes alone determine.
template <class System, class V, class Term, class Take>
void reduce_columns(Index rows, Index columns, const Term& term, const Take& take) {
  constexpr Index piece = 128;
  const Index pieces = (rows + piece - 1) / piece;
  if (pieces <= 1) {
    const ReduceColumns<V, Term, Take> all{rows, columns, piece, term, take};
    launch<System>(all.blocks(), all);
    return;
  }
  Tensor<V, ThrustBackend<System>> partial(Shape{pieces, columns});
  const ReduceColumns<V, Term, KeepPartial<V>> first{
      rows, columns, piece, term, {partial.data(), columns}};
  launch<System>(first.blocks(), first);
  const ReduceColumns<V, ElementAt<V>, Take> second{
      pieces, columns, pieces, {partial.data(), columns}, take};
  launch<System>(second.blocks(), second);
}

/// `ComposedColumnSums` as tile programs.
template <class System>
struct TiledColumnSums {
  template <class T>
  struct Add {
    T* sums;
    INFTY_HOST_DEVICE void operator()(Index, Index column, T sum) const { sums[column] += sum; }
  };

  /// sums (columns) += column sums of x (rows, columns).
  template <class T>
  static void add(Index rows, Index columns, const T* x, T* sums) {
    reduce_columns<System, T>(rows, columns, ElementAt<T>{x, columns}, Add<T>{sums});
  }
};

}  // namespace infty::detail
