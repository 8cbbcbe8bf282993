// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

namespace infty::detail {

/// Whether a backend says that it has so many threads that some hundred rows leave most of them
/// idle: then a sum over long rows is better written as a matrix product.
template <class B>
inline constexpr bool many_threads = requires { requires B::many_threads; };

/// f(row, column) for all columns of a row.
template <class F>
struct OverColumns {
  Index columns;
  F f;
  INFTY_HOST_DEVICE void operator()(Index row) const {
    for (Index column = 0; column < columns; ++column) f(row, column);
  }
};

/// Calls f(row, column) for row in [0, rows) and column in [0, columns), in any order. A row at a
/// time, in one thread, unless a backend of many threads brings `B::for_each_element`, which
/// spreads the columns as well.
template <class B, class F>
void for_each_element(Index rows, Index columns, F f) {
  if constexpr (requires { B::for_each_element(rows, columns, f); })
    B::for_each_element(rows, columns, f);
  else
    B::for_each_row(rows, columns, OverColumns<F>{columns, f});
}

/// f(row, begin, end) of one column, or of a whole row.
template <class F>
struct OverSpan {
  Index columns;
  F f;
  INFTY_HOST_DEVICE void operator()(Index row, Index column) const { f(row, column, column + 1); }
  INFTY_HOST_DEVICE void operator()(Index row) const { f(row, Index{0}, columns); }
};

/// Calls f(row, begin, end) for spans [begin, end) that make up the columns [0, columns) of each
/// row, in any order: for bodies that loop over neighbouring columns, which a compiler turns into
/// vector code. A row is one span, or every column is one on a backend of many threads. `cost` is
/// how many elements a row loops over, for all of its columns.
template <class B, class F>
void for_each_span(Index rows, Index columns, Index cost, F f) {
  const OverSpan<F> spans{columns, f};
  if constexpr (many_threads<B>)
    for_each_element<B>(rows, columns, spans);
  else if (columns > 0)
    B::for_each_row(rows, cost, spans);
}

}  // namespace infty::detail
