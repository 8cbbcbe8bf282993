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

/// A factor that several products share, with its pairs laid out once, over the threads.
template <class T>
class SharedPairs {
 public:
  /// Lays out the pairs of x if they are `wanted`, and floats.
  /// @param side   rows of a left factor, columns of a right one
  /// @param along  whether k runs along the memory of x
  SharedPairs(bool wanted, Index side, Index k, const T* x, Index leading, bool along)
      : wanted_(wanted && std::is_same_v<T, float>),
        along_(along),
        width_(along ? (k + 1) / 2 : side),
        memory_(wanted_ ? side * ((k + 1) / 2) : 0) {
    if constexpr (std::is_same_v<T, float>) {
      if (!wanted_) return;
      const Index lines = along ? side : (k + 1) / 2;
      parallel_for(lines, std::max<Index>(1, 32768 / std::max<Index>(1, width_)),
                   [&](Index begin, Index end) {
                     T* const to = memory_.data() + begin * width_;
                     if (along)
                       pairs_of(end - begin, k, x + begin * leading, leading, true, to);
                     else
                       pairs_of(side, (std::min)(k, 2 * end) - 2 * begin, x + 2 * begin * leading,
                                leading, false, to);
                   });
    }
  }
  /// Whether there are any.
  explicit operator bool() const { return wanted_; }
  /// Those from row or column i and the even place `first` of k on.
  GemmOperand<T> from(Index i, Index first, bool transposed) const {
    const Index line = along_ ? i : first / 2, column = along_ ? first / 2 : i;
    return {memory_.data() + line * width_ + column, width_, transposed};
  }

 private:
  bool wanted_, along_;
  Index width_;
  Scratch<T> memory_;
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
