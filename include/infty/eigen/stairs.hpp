// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <limits>

#include <infty/core/config.hpp>

// Products of which one matrix is a triangle, as scores are that a query does not see: by tiles,
// without those that hold nothing. What is left out is a zero of a sum, or what nobody reads.
namespace infty::detail {

/// Indices [begin, end).
struct IndexRange {
  Index begin, end;
};

/// Which elements of a matrix count: of row i those of columns [left - i, right + i).
struct Stairs {
  Index left = 0, right = (std::numeric_limits<Index>::max)() / 2;

  /// Those of n columns that any of the rows before `end` has.
  IndexRange columns(Index end, Index n) const {
    const Index last = (std::min)(n, right + end - 1);
    return {std::clamp<Index>(left - end + 1, 0, (std::max)(last, Index{0})),
            (std::max)(last, Index{0})};
  }
  /// Those of m rows that have any of these columns.
  IndexRange rows(IndexRange of, Index m) const {
    return {std::clamp<Index>((std::max)(left - of.end + 1, of.begin - right + 1), 0, m), m};
  }
};

/// What is to be computed of C (m, n) = A B: everything.
struct WholeProduct {
  /// Rows of C, in a strip of columns; the others are left as they are.
  IndexRange rows(IndexRange, Index m) const { return {0, m}; }
  /// What is summed over, of k, for some rows and columns of C.
  IndexRange terms(IndexRange, IndexRange, Index k) const { return {0, k}; }
};

/// The elements of C that count.
struct StairsOfResult : WholeProduct {
  Stairs stairs;
  explicit StairsOfResult(Stairs s) : stairs(s) {}
  IndexRange rows(IndexRange columns, Index m) const { return stairs.rows(columns, m); }
};

/// The elements of C that count, where its transpose is the matrix.
struct StairsOfTurnedResult : WholeProduct {
  Stairs stairs;
  explicit StairsOfTurnedResult(Stairs s) : stairs(s) {}
  IndexRange rows(IndexRange columns, Index m) const { return stairs.columns(columns.end, m); }
};

/// C where B's elements that do not count are zeros.
struct StairsOnTheRight : WholeProduct {
  Stairs stairs;
  explicit StairsOnTheRight(Stairs s) : stairs(s) {}
  IndexRange terms(IndexRange, IndexRange columns, Index k) const {
    return stairs.rows(columns, k);
  }
};

/// C where A's elements that do not count are zeros.
struct StairsOnTheLeft : WholeProduct {
  Stairs stairs;
  explicit StairsOnTheLeft(Stairs s) : stairs(s) {}
  IndexRange terms(IndexRange rows, IndexRange, Index k) const {
    return stairs.columns(rows.end, k);
  }
};

/// C where A's elements that do not count are zeros, and A's transpose is the matrix.
struct TurnedStairsOnTheLeft : WholeProduct {
  Stairs stairs;
  explicit TurnedStairsOnTheLeft(Stairs s) : stairs(s) {}
  IndexRange terms(IndexRange rows, IndexRange, Index k) const { return stairs.rows(rows, k); }
};

/// The same where `together` terms stand as one.
template <Index together, class Part>
struct JoinedTerms {
  Part part;
  IndexRange rows(IndexRange columns, Index m) const { return part.rows(columns, m); }
  IndexRange terms(IndexRange rows, IndexRange columns, Index k) const {
    const IndexRange single = part.terms(rows, columns, k * together);
    return {single.begin / together, (single.end + together - 1) / together};
  }
};

}  // namespace infty::detail
