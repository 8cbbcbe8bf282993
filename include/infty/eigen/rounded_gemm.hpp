// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/eigen/gemm.hpp>
#include <infty/eigen/pairs.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/rounded_tile.hpp>
#include <infty/eigen/scratch.hpp>
#include <infty/eigen/tile_product.hpp>

// Products of float matrices whose factors are rounded to bfloat16 and that are summed in float: by
// the tiles of products in full, whose elements here are pairs of two that follow each other in the
// order of k.
namespace infty::detail {

/// `laid_out`, over the threads.
/// @param side   rows of a left factor, columns of a right one
/// @param along  whether k runs along the memory of x
inline void lay_out_by_threads(PairLayout layout, Index side, Index k, const float* x,
                               Index leading, bool along, float* to) {
  const Index pairs = (k + 1) / 2, width = line_of(layout, side, pairs, along);
  const bool by_side = along || for_tiles(layout);
  const Index each = for_tiles(layout) ? strip_width : 1, lines = by_side ? side : pairs,
              chunks = (lines + each - 1) / each;
  parallel_for(chunks, std::max<Index>(1, 32768 / std::max<Index>(1, each * width)),
               [&](Index begin, Index end) {
                 const Index first = begin * each, count = (std::min)(lines, end * each) - first;
                 if (by_side)
                   laid_out(layout, count, k, x + first * (along ? leading : 1), leading, along,
                            to + first * width);
                 else
                   laid_out(layout, side, (std::min)(k - 2 * first, 2 * count),
                            x + 2 * first * leading, leading, along,
                            to + room_of(layout, side, first));
               });
}

/// A factor that several products share, with its pairs laid out once.
template <class T>
class SharedPairs {
 public:
  /// Lays out the pairs of x if they are `wanted`, and floats, as `lay_out_by_threads` does.
  SharedPairs(bool wanted, PairLayout layout, Index side, Index k, const T* x, Index leading,
              bool along)
      : SharedPairs(wanted && std::is_same_v<T, float>, layout, side, k, along) {
    if constexpr (std::is_same_v<T, float>)
      if (wanted_) lay_out_by_threads(layout, side, k, x, leading, along, memory_.data());
  }
  /// Takes those of a right factor that are laid out, joined, where k does not run along their
  /// memory.
  SharedPairs(PairLayout layout, Index side, Index k, const T* pairs)
      : SharedPairs(for_tiles(layout), layout, side, k, false) {
    wanted_ = true;
    if (!for_tiles(layout)) pairs_ = pairs;
    if constexpr (std::is_same_v<T, float>)
      if (for_tiles(layout)) {
        const Index count = (k + 1) / 2, strip = strip_width * whole_tiles(count);
        parallel_for((side + strip_width - 1) / strip_width,
                     std::max<Index>(1, 32768 / std::max<Index>(1, strip)),
                     [&](Index begin, Index end) {
                       const Index first = begin * strip_width;
                       strips_of_pairs((std::min)(side, end * strip_width) - first, count,
                                       pairs + first, side, memory_.data() + begin * strip);
                     });
      }
  }

  /// Whether there are any.
  explicit operator bool() const { return wanted_; }
  /// Those from row or column i, of a whole strip, and the even place `first` of k on, of a whole
  /// tile.
  GemmOperand<T> from(Index i, Index first, bool transposed) const {
    const Index at = first / 2;
    if (layout_ == PairLayout::strips)
      return {pairs_ + i * width_ + at * strip_width, strip_width * width_, false};
    const Index along = at * (layout_ == PairLayout::halves ? 2 : 1);
    const bool by_side = along_ || for_tiles(layout_);
    return {pairs_ + (by_side ? i * width_ + along : along * width_ + i), width_, transposed};
  }

 private:
  SharedPairs(bool has, PairLayout layout, Index side, Index k, bool along)
      : wanted_(has),
        along_(along),
        layout_(layout),
        width_(line_of(layout, side, (k + 1) / 2, along)),
        memory_(has ? room_of(layout, side, (k + 1) / 2) : 0),
        pairs_(memory_.data()) {}

  bool wanted_, along_;
  PairLayout layout_;
  Index width_;
  Scratch<T> memory_;
  const T* pairs_;
};

/// Which factors of a product are laid out already.
struct InPairs {
  bool a = false, b = false;
};

/// c (m, n) = alpha a b + beta c, with the elements of a and b rounded to bfloat16. Every element
/// of c is summed in the order of k alone, of each pair the second product first; a left factor in
/// pairs is multiplied by the instruction for it, one in halves to the same bits, and one in rows
/// by tiles, with sums of their own (`TileRegisters::add_product`).
template <bool dot = dot_here>
void rounded_gemm(Index m, Index n, Index k, float alpha, GemmOperand<float> a,
                  GemmOperand<float> b, float beta, float* c, Index ldc,
                  PairLayout of_left = left_layout<dot>(), InPairs in_pairs = {}) {
  const Index pairs = (k + 1) / 2;
  const bool by_pairs = of_left == PairLayout::joined;
  const Scratch<float> left(in_pairs.a ? 0 : room_of(of_left, m, pairs));
  GemmOperand<float> x = a, y = b;
  if (!in_pairs.a) x = laid_out(of_left, m, k, a.data, a.leading, !a.transposed, left.data());
#if defined(INFTY_TILE_REGISTERS)
  if (of_left == PairLayout::rows) {
    if (m <= most_few_rows && !a.transposed && b.transposed && k > 0 && !in_pairs.b)
      return tile_few_rows(m, n, k, alpha, x, b.data, b.leading, beta, c, ldc);
    const Scratch<float> right(in_pairs.b ? 0 : room_of(PairLayout::strips, n, pairs));
    if (!in_pairs.b) y = strips_of(n, k, b.data, b.leading, b.transposed, right.data());
    return tile_gemm(m, n, pairs, alpha, x, y, beta, c, ldc);
  }
#endif
#if defined(INFTY_DOT_INSTRUCTION)
  // Rows that are few meet each number of b as soon as it is read and rounded.
  if (has_dot_instruction() && m <= most_few_rows && !a.transposed && b.transposed && k > 0 &&
      !in_pairs.b) {
    const auto multiply = [&]<class Elements>(Elements) {
      few_rows_gemm<Elements>(m, n, k, alpha, x.data, x.leading, b.data, b.leading, beta, c, ldc);
    };
    return by_pairs ? multiply(PairElements{}) : multiply(RoundedHalves{});
  }
#endif
  const Scratch<float> right(in_pairs.b ? 0 : n * pairs);
  if (!in_pairs.b) y = pairs_of(n, k, b.data, b.leading, b.transposed, right.data());
  x.transposed = a.transposed;
  y.transposed = b.transposed;
  if (by_pairs)
    tiled_gemm<DotTile>(m, n, pairs, alpha, x, y, beta, c, ldc);
  else
    tiled_gemm<HalfTile>(m, n, pairs, alpha, x, y, beta, c, ldc);
}

}  // namespace infty::detail
