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

// Products of float matrices whose factors are rounded to bfloat16 and that are summed in float: by
// the tiles of products in full, whose elements here are pairs of two that follow each other in the
// order of k.
namespace infty::detail {

/// `pairs_of`, over the threads.
/// @param side   rows of a left factor, columns of a right one
/// @param along  whether k runs along the memory of x
inline void pairs_by_threads(Index side, Index k, const float* x, Index leading, bool along,
                             float* to) {
  const Index pairs = (k + 1) / 2, lines = along ? side : pairs, width = along ? pairs : side;
  parallel_for(lines, std::max<Index>(1, 32768 / std::max<Index>(1, width)),
               [&](Index begin, Index end) {
                 if (along)
                   pairs_of(end - begin, k, x + begin * leading, leading, true, to + begin * width);
                 else
                   pairs_of(side, (std::min)(k, 2 * end) - 2 * begin, x + 2 * begin * leading,
                            leading, false, to + begin * width);
               });
}

/// A factor that several products share, with its pairs laid out once.
template <class T>
class SharedPairs {
 public:
  /// Lays out the pairs of x if they are `wanted`, and floats, as `pairs_by_threads` does.
  SharedPairs(bool wanted, Index side, Index k, const T* x, Index leading, bool along)
      : wanted_(wanted && std::is_same_v<T, float>),
        along_(along),
        width_(along ? (k + 1) / 2 : side),
        memory_(wanted_ ? side * ((k + 1) / 2) : 0),
        pairs_(memory_.data()) {
    if constexpr (std::is_same_v<T, float>)
      if (wanted_) pairs_by_threads(side, k, x, leading, along, memory_.data());
  }
  /// Takes those that are laid out, where k does not run along their memory.
  SharedPairs(Index side, const T* pairs)
      : wanted_(true), along_(false), width_(side), memory_(0), pairs_(pairs) {}

  /// Whether there are any.
  explicit operator bool() const { return wanted_; }
  /// Those from row or column i and the even place `first` of k on.
  GemmOperand<T> from(Index i, Index first, bool transposed) const {
    const Index line = along_ ? i : first / 2, column = along_ ? first / 2 : i;
    return {pairs_ + line * width_ + column, width_, transposed};
  }

 private:
  bool wanted_, along_;
  Index width_;
  Scratch<T> memory_;
  const T* pairs_;
};

/// Which factors of a product are pairs already.
struct InPairs {
  bool a = false, b = false;
};

/// c (m, n) = alpha a b + beta c, with the elements of a and b rounded to bfloat16. Every element
/// of c is summed in the order of k alone, as by `dot_pair`; the instructions for it are used if
/// `fast`.
inline void rounded_gemm(Index m, Index n, Index k, float alpha, GemmOperand<float> a,
                         GemmOperand<float> b, float beta, float* c, Index ldc,
                         bool fast = has_dot_instruction(), InPairs in_pairs = {}) {
  const Index pairs = (k + 1) / 2;
  const Scratch<float> left(in_pairs.a ? 0 : m * pairs);
  GemmOperand<float> x = a, y = b;
  if (!in_pairs.a) x = pairs_of(m, k, a.data, a.leading, !a.transposed, left.data(), fast);
#if defined(INFTY_DOT_INSTRUCTION)
  // Rows that are few meet each number of b as soon as it is read and rounded.
  if (fast && m <= most_few_rows && !a.transposed && b.transposed && k > 0 && !in_pairs.b)
    return few_rows_gemm<PairElements>(m, n, k, alpha, x.data, x.leading, b.data, b.leading, beta,
                                       c, ldc);
#endif
  const Scratch<float> right(in_pairs.b ? 0 : n * pairs);
  if (!in_pairs.b) y = pairs_of(n, k, b.data, b.leading, b.transposed, right.data(), fast);
  x.transposed = a.transposed;
  y.transposed = b.transposed;
  if (fast)
    tiled_gemm<DotTile>(m, n, pairs, alpha, x, y, beta, c, ldc);
  else
    tiled_gemm<SlowDotTile>(m, n, pairs, alpha, x, y, beta, c, ldc);
}

}  // namespace infty::detail
