// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/number.hpp>
#include <infty/eigen/linear_algebra.hpp>

namespace infty::detail {

// Cholesky by blocks of rows: all but what the blocks on the diagonal do are matrix products, which
// go over the threads. How work is cut depends on the sizes alone, and so do sums.

/// Rows of a block on the diagonal, and columns or rows that a thread solves with it at a time.
inline constexpr Index cholesky_block = 128, cholesky_task = 64;

/// C (m, n) -= op(A) op(B), of inner size k; rows of C are `leading` apart.
template <class T>
void subtract_product(Index m, Index n, Index k, const T* a, Matmul::Operand op_a, const T* b,
                      Matmul::Operand op_b, T* c, Index leading) {
  if (k == 0) return;
  matmul({.m = m, .n = n, .k = k, .a = op_a, .b = op_b, .c = {.leading = leading}}, T(-1), a, b,
         T(1), c);
}

/// The lower triangle of A (n, n) becomes L with L Lᵀ = A; false, and A is lost, if A is not s.p.d.
template <class T>
bool cholesky_factor(Index n, T* a) {
  for (Index k = 0; k < n; k += cholesky_block) {
    const Index size = (std::min)(cholesky_block, n - k), end = k + size;
    T* const row = a + k * n;
    subtract_product<T>(n - k, size, k, row, {.leading = n}, row,
                        {.leading = n, .transposed = true}, row + k, n);
    Strided<T> diagonal(row + k, size, size, Eigen::OuterStride<>(n));
    {
      const OneThread guard;
      Eigen::Ref<RowMajor<T>, 0, Eigen::OuterStride<>> in_place(diagonal);
      if (Eigen::LLT<decltype(in_place)>(in_place).info() != Eigen::Success) return false;
    }
    // Eigen lets NaN and infinity pass; every one in the lower triangle reaches the diagonal.
    for (Index i = 0; i < size; ++i)
      if (!math::is_finite(row[i * n + k + i])) return false;
    parallel_for(n - end, cholesky_task, [&](Index begin, Index stop) {
      const OneThread guard;
      Strided<T> below(a + (end + begin) * n + k, stop - begin, size, Eigen::OuterStride<>(n));
      diagonal.template triangularView<Eigen::Lower>()
          .transpose()
          .template solveInPlace<Eigen::OnTheRight>(below);
    });
  }
  return true;
}

/// B (n, m) becomes (L Lᵀ)^-1 B, L being the lower triangle of the matrix at `a`.
template <class T>
void solve_factored(Index n, Index m, const T* a, T* b) {
  const auto solve = [&](Index k, const auto& triangle) {
    parallel_for(m, cholesky_task, [&](Index begin, Index end) {
      const OneThread guard;
      Strided<T> columns(b + k * m + begin, (std::min)(cholesky_block, n - k), end - begin,
                         Eigen::OuterStride<>(m));
      triangle.solveInPlace(columns);
    });
  };
  const auto block_at = [&](Index k) {
    const Index size = (std::min)(cholesky_block, n - k);
    return ConstStrided<T>(a + k * n + k, size, size, Eigen::OuterStride<>(n));
  };
  for (Index k = 0; k < n; k += cholesky_block) {
    const auto block = block_at(k);
    subtract_product<T>(block.rows(), m, k, a + k * n, {.leading = n}, b, {.leading = m}, b + k * m,
                        m);
    solve(k, block.template triangularView<Eigen::Lower>());
  }
  for (Index end = n; end > 0; end = (end - 1) / cholesky_block * cholesky_block) {
    const Index k = (end - 1) / cholesky_block * cholesky_block;
    const auto block = block_at(k);
    subtract_product<T>(block.rows(), m, n - end, a + end * n + k,
                        {.leading = n, .transposed = true}, b + end * m, {.leading = m}, b + k * m,
                        m);
    solve(k, block.template triangularView<Eigen::Lower>().transpose());
  }
}

/// A (n, n) becomes its lower Cholesky factor, B (n, m) becomes A^-1 B; false if A is not s.p.d.
template <class T>
bool cholesky_solve(Index n, Index m, T* a, T* b) {
  if (!cholesky_factor(n, a)) return false;
  solve_factored(n, m, a, b);
  return true;
}

}  // namespace infty::detail
