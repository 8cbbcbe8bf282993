// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/bfloat16.hpp>
#include <infty/core/config.hpp>
#include <infty/eigen/gemm.hpp>
#include <infty/eigen/rounded_tile.hpp>
#include <infty/eigen/tile_registers.hpp>
#include <infty/eigen/transpose.hpp>

// Elements of an operand rounded to bfloat16, in pairs of two that follow each other in the order
// of k, each in the bits of a float.
namespace infty::detail {

/// to[0, n) = the pairs of x[0, 2 n).
inline void pair_neighbours(Index n, const float* x, float* to, [[maybe_unused]] bool fast) {
  Index p = 0;
#if defined(INFTY_DOT_INSTRUCTION)
  using S = Simd<float>;
  if (fast)
    for (; p + S::width <= n; p += S::width)
      S::store(to + p, rounded_pairs<false>(S::load(x + 2 * p), S::load(x + 2 * p + S::width)));
#endif
  for (; p < n; ++p) to[p] = rounded_pair(x[2 * p], x[2 * p + 1]);
}

/// to[0, n) = the pairs of x and y [0, n).
inline void pair_lines(Index n, const float* x, const float* y, float* to,
                       [[maybe_unused]] bool fast) {
  Index i = 0;
#if defined(INFTY_DOT_INSTRUCTION)
  using S = Simd<float>;
  if (fast)
    for (; i + S::width <= n; i += S::width)
      S::store(to + i, rounded_pairs<true>(S::load(x + i), S::load(y + i)));
#endif
  for (; i < n; ++i) to[i] = rounded_pair(x[i], y[i]);
}

/// Lays the pairs of an operand out, [rows, ⌈k / 2⌉] if k runs along its memory, or else
/// [⌈k / 2⌉, rows]; the partner that an odd k lacks is 0. The processor's instructions round if
/// `fast`, to the same bits.
[[gnu::noinline]] inline GemmOperand<float> pairs_of(Index rows, Index k, const float* x,
                                                     Index leading, bool along_memory, float* to,
                                                     bool fast = has_dot_instruction()) {
  const Index pairs = (k + 1) / 2, whole = k / 2;
  if (along_memory) {
    for (Index i = 0; i < rows; ++i, x += leading, to += pairs) {
      pair_neighbours(whole, x, to, fast);
      if (whole < pairs) to[whole] = rounded_pair(x[k - 1], 0);
    }
    return {to - rows * pairs, pairs, false};
  }
  for (Index p = 0; p < whole; ++p, x += 2 * leading, to += rows)
    pair_lines(rows, x, x + leading, to, fast);
  if (whole < pairs)
    for (Index i = 0; i < rows; ++i) to[i] = rounded_pair(x[i], 0);
  return {to - whole * rows, rows, false};
}

/// Lays out the halves of these pairs, floats of their own, the upper one first:
/// [rows, 2 ⌈k / 2⌉], or else [2 ⌈k / 2⌉, rows].
[[gnu::noinline]] inline GemmOperand<float> halves_of(Index rows, Index k, const float* x,
                                                      Index leading, bool along_memory, float* to) {
  const Index whole = k / 2, width = along_memory ? (k + 1) / 2 * 2 : rows;
  const auto rounded = [](float value) { return to_bfloat16(without_subnormals(value)); };
  if (along_memory) {
    for (Index i = 0; i < rows; ++i, x += leading, to += width) {
      for (Index p = 0; p < whole; ++p) {
        to[2 * p] = rounded(x[2 * p + 1]);
        to[2 * p + 1] = rounded(x[2 * p]);
      }
      if (2 * whole < k) to[k - 1] = 0, to[k] = rounded(x[k - 1]);
    }
    return {to - rows * width, width, false};
  }
  float* const begin = to;
  for (Index p = 0; p < whole; ++p, x += 2 * leading, to += 2 * rows)
    for (Index i = 0; i < rows; ++i) {
      to[i] = rounded(x[leading + i]);
      to[rows + i] = rounded(x[i]);
    }
  if (2 * whole < k)
    for (Index i = 0; i < rows; ++i) to[i] = 0, to[rows + i] = rounded(x[i]);
  return {begin, width, false};
}

/// Lays the pairs of an operand out in rows that registers take as tiles: [rows, ⌈k / 2⌉], with
/// zeros behind each row's up to a whole tile.
[[gnu::noinline]] inline GemmOperand<float> tile_rows_of(Index rows, Index k, const float* x,
                                                         Index leading, bool along_memory,
                                                         float* to) {
  const Index pairs = (k + 1) / 2, whole = k / 2, width = whole_tiles(pairs);
  if (along_memory) {
    for (Index i = 0; i < rows; ++i, x += leading) {
      float* const row = to + i * width;
      pair_neighbours(whole, x, row, has_dot_instruction());
      if (whole < pairs) row[whole] = rounded_pair(x[k - 1], 0);
      std::fill(row + pairs, row + width, 0.f);
    }
    return {to, width, false};
  }
  // Sixteen rows by as many pairs at a time, which are turned where they are read.
  alignas(64) float square[tile_side * tile_side];
  for (Index i = 0; i < rows; i += tile_side)
    for (Index p = 0; p < pairs; p += tile_side) {
      const Index height = (std::min)(tile_side, rows - i),
                  count = (std::min)(2 * tile_side, k - 2 * p);
      pairs_of(height, count, x + 2 * p * leading + i, leading, false, square);
      const Index filled = (count + 1) / 2;
      float* const target = to + i * width + p;
      transpose(filled, height, square, height, target, width);
      for (Index r = 0; r < height; ++r)
        std::fill(target + r * width + filled, target + r * width + tile_side, 0.f);
    }
  return {to, width, false};
}

/// Fills a strip with zeros behind the first `width` of its 32 columns, and behind its pairs up to
/// a whole tile.
inline void end_strip(Index width, Index pairs, float* strip) {
  if (width < strip_width)
    for (Index p = 0; p < pairs; ++p)
      std::fill(strip + p * strip_width + width, strip + (p + 1) * strip_width, 0.f);
  std::fill(strip + pairs * strip_width, strip + whole_tiles(pairs) * strip_width, 0.f);
}

/// Lays the pairs of an operand out in strips of 32 rows that stand across: [strips, ⌈k / 2⌉, 32],
/// with zeros behind both sides, up to a whole tile along k.
[[gnu::noinline]] inline GemmOperand<float> strips_of(Index rows, Index k, const float* x,
                                                      Index leading, bool along_memory, float* to) {
  const Index pairs = (k + 1) / 2, strip = whole_tiles(pairs) * strip_width;
  alignas(64) float square[tile_side * tile_side];
  for (Index i = 0; i < rows; i += strip_width) {
    float* const into = to + i / strip_width * strip;
    const Index width = (std::min)(strip_width, rows - i);
    if (!along_memory)
      for (Index p = 0; p < pairs; ++p)
        pairs_of(width, (std::min)(Index{2}, k - 2 * p), x + 2 * p * leading + i, leading, false,
                 into + p * strip_width);
    else
      for (Index p = 0; p < pairs; p += tile_side)
        for (Index r = 0; r < width; r += tile_side) {
          const Index height = (std::min)(tile_side, width - r),
                      count = (std::min)(2 * tile_side, k - 2 * p), filled = (count + 1) / 2;
          pairs_of(height, count, x + (i + r) * leading + 2 * p, leading, true, square);
          transpose(height, filled, square, filled, into + p * strip_width + r, strip_width);
        }
    end_strip(width, pairs, into);
  }
  return {to, strip, false};
}

/// The same of pairs that stand across already, [⌈k / 2⌉, rows].
inline void strips_of_pairs(Index rows, Index pairs, const float* x, Index leading, float* to) {
  const Index strip = whole_tiles(pairs) * strip_width;
  for (Index i = 0; i < rows; i += strip_width, to += strip) {
    const Index width = (std::min)(strip_width, rows - i);
    for (Index p = 0; p < pairs; ++p) std::copy_n(x + p * leading + i, width, to + p * strip_width);
    end_strip(width, pairs, to);
  }
}

/// How a factor is laid out: in pairs, one float each, in their halves, two, in rows of pairs that
/// fill tiles, along memory wherever they come from, or in strips of such rows across.
enum class PairLayout { joined, halves, rows, strips };

/// Whether it is one that registers take as tiles.
constexpr bool for_tiles(PairLayout layout) { return layout >= PairLayout::rows; }

/// How a left factor is multiplied on this processor.
template <bool dot = dot_here>
PairLayout left_layout() {
  if (dot && has_tile_registers()) return PairLayout::rows;
  return multiplies_pairs<dot>() ? PairLayout::joined : PairLayout::halves;
}
/// How the right factor stands that such a left one is multiplied by.
constexpr PairLayout right_layout(PairLayout of_left) {
  return for_tiles(of_left) ? PairLayout::strips : PairLayout::joined;
}

/// Floats between two lines of a factor: those of so many pairs where k runs along memory or the
/// layout is for tiles, and else one a side.
constexpr Index line_of(PairLayout layout, Index side, Index pairs, bool along) {
  if (for_tiles(layout)) return whole_tiles(pairs);
  return layout == PairLayout::halves && along ? 2 * pairs : along ? pairs : side;
}

/// The floats that a factor takes; from any of its rows on a whole tile may be read.
constexpr Index room_of(PairLayout layout, Index side, Index pairs) {
  if (layout == PairLayout::rows) return (side + tile_side - 1) * whole_tiles(pairs);
  if (layout == PairLayout::strips)
    return (side + strip_width - 1) / strip_width * strip_width * whole_tiles(pairs);
  return side * pairs * (layout == PairLayout::halves ? 2 : 1);
}

/// Lays an operand out in that way.
inline GemmOperand<float> laid_out(PairLayout layout, Index rows, Index k, const float* x,
                                   Index leading, bool along_memory, float* to) {
  if (layout == PairLayout::rows) return tile_rows_of(rows, k, x, leading, along_memory, to);
  if (layout == PairLayout::strips) return strips_of(rows, k, x, leading, along_memory, to);
  return layout == PairLayout::joined ? pairs_of(rows, k, x, leading, along_memory, to)
                                      : halves_of(rows, k, x, leading, along_memory, to);
}

}  // namespace infty::detail
