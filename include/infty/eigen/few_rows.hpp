// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/config.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/transpose.hpp>

// Products of a few rows with a matrix that is stored transposed, as a layer's weights are: what a
// token costs in generation. The weights are read once, from end to end, and are turned in
// registers on the way: nothing is packed, and memory is all that is waited for.
namespace infty::detail {

/// Rows of a product up to which `few_rows` takes it.
inline constexpr Index most_few_rows = 8;

#if !defined(__CUDACC__)  // whose front end does not know the shuffle

/// The right operand of a product of few rows, of numbers as they are stored: row j is column j of
/// the product's matrix.
template <class T, class Stored>
struct FewRowsWeights {
  const Stored* row[Simd<T>::width];  ///< where each begins; of fewer, the last one again
  Index next;  ///< from here to what will be read after this, to be fetched meanwhile; 0: none
};

/// A square of W rows and elements [p, p + W) of each, turned: vector q has those at p + q.
template <class Elements, class T, class Stored>
[[gnu::always_inline]] inline void load_turned(const FewRowsWeights<T, Stored>& b, Index p,
                                               typename Simd<T>::Vector* square) {
  INFTY_UNROLL(16)
  for (Index r = 0; r < Simd<T>::width; ++r)
    square[r] = Elements::load(b.row[r] + p * Elements::floats);
  transpose_steps<1, T>(square);
}

/// The elements from p on, at most W, of all rows, one behind the other.
template <class Elements, class T, class Stored>
[[gnu::noinline]] void store_turned(const FewRowsWeights<T, Stored>& b, Index p, Index length,
                                    T* columns) {
  constexpr Index W = Simd<T>::width;
  for (Index at = p * Elements::floats; at < length; at += Elements::floats, columns += W)
    for (Index r = 0; r < W; ++r) columns[r] = Elements::element(b.row[r] + at, length - at);
}

/// C (rows, W) = or += A (rows, k) B (k, W), summed in the order of k as `RegisterTile` does, for
/// `length` numbers of B's rows, of which its elements are made; rows of A, which are elements, or
/// the floats that each part of one is multiplied by, are lda apart.
template <int rows, class Elements, class T, class Stored>
[[gnu::noinline]] void few_rows_tile(Index length, const T* a, Index lda,
                                     const FewRowsWeights<T, Stored>& b, bool add, T* c,
                                     Index ldc) {
  using S = Simd<T>;
  constexpr Index W = S::width, floats = Elements::floats, parts = Elements::parts;
  constexpr Index line = S::bytes / static_cast<Index>(sizeof(Stored));
  const Index whole = length / floats, k = (length + floats - 1) / floats;
  typename S::Vector sum[rows] = {};
  const auto multiply = [&](Index p, const typename S::Vector& right) {
    typename S::Vector part[parts];
    Elements::take_apart(right, part);
    INFTY_UNROLL(2)
    for (Index q = 0; q < parts; ++q) {
      INFTY_UNROLL(8)
      for (int i = 0; i < rows; ++i)
        Elements::add_product(
            sum[i], Elements::template copies<typename S::Vector>(a[i * lda + p * parts + q]),
            part[q]);
    }
  };
  const typename Elements::Sums arithmetic;
  const auto keep = [&] {
    INFTY_UNROLL(8)
    for (int i = 0; i < rows; ++i) arithmetic.keep(sum[i]);
  };
  keep();
  Index p = 0;
  for (; p + W <= whole; p += W) {
    typename S::Vector square[W];
    load_turned<Elements>(b, p, square);
    if (b.next != 0)
      for (Index r = 0; r < W; ++r)
        for (Index at = 0; at < floats * W; at += line)
          __builtin_prefetch(b.row[r] + p * floats + at + b.next, 0, 2);
    INFTY_UNROLL(16)
    for (Index q = 0; q < W; ++q) multiply(p + q, square[q]);
  }
  if (p < k) {
    T columns[W * W];
    store_turned<Elements>(b, p, length, columns);
    for (const T* column = columns; p < k; ++p, column += W) multiply(p, S::load(column));
  }
  keep();
  arithmetic.end();
  keep();
  INFTY_UNROLL(8)
  for (int i = 0; i < rows; ++i) {
    T* const to = c + i * ldc;
    S::store(to, add ? S::load(to) + sum[i] : sum[i]);
  }
}

/// C (m, W) = or += A B of at most `most_few_rows` rows, by tiles of so many rows that there are
/// few to compile: a second one finds the weights in cache.
template <class Elements, class T, class Stored>
void few_rows(Index m, Index length, const T* a, Index lda, const FewRowsWeights<T, Stored>& b,
              bool add, T* c, Index ldc) {
  const auto tile = [&]<int rows>() {
    few_rows_tile<rows, Elements>(length, a, lda, b, add, c, ldc);
  };
  if (m == most_few_rows) return tile.template operator()<most_few_rows>();
  if (m >= 4) {
    tile.template operator()<4>();
    m -= 4, a += 4 * lda, c += 4 * ldc;
  }
  if (m == 3) tile.template operator()<3>();
  if (m == 2) tile.template operator()<2>();
  if (m == 1) tile.template operator()<1>();
}

#endif

}  // namespace infty::detail
