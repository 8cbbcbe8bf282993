// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <infty/core/backend.hpp>
#include <infty/eigen/include.hpp>
#include <infty/eigen/parallel.hpp>

namespace infty::detail {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Strided = Eigen::Map<RowMajor<T>, 0, Eigen::OuterStride<>>;
template <class T>
using ConstStrided = Eigen::Map<const RowMajor<T>, 0, Eigen::OuterStride<>>;

/// While it lives, Eigen keeps to this thread: how its own threads cut a product would change sums.
class OneThread {
 public:
#if defined(_OPENMP)
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
#else
  OneThread() {}
#endif
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  [[maybe_unused]] int before_ = 1;
};

/// c = alpha a b + beta c for expressions; beta 0 overwrites, whatever c held.
template <class T, class A, class B>
void multiply(T alpha, const A& a, const B& b, T beta, Strided<T> c) {
  if (beta == T(0)) {
    c.setZero();
  } else if (beta != T(1)) {
    c *= beta;
  }
  if (a.cols() > 0) c.noalias() += alpha * (a * b);
}

template <class T>
void multiply(bool transpose_a, bool transpose_b, T alpha, ConstStrided<T> a, ConstStrided<T> b,
              T beta, Strided<T> c) {
  if (transpose_a && transpose_b) {
    multiply(alpha, a.transpose(), b.transpose(), beta, c);
  } else if (transpose_a) {
    multiply(alpha, a.transpose(), b, beta, c);
  } else if (transpose_b) {
    multiply(alpha, a, b.transpose(), beta, c);
  } else {
    multiply(alpha, a, b, beta, c);
  }
}

/// Batched matrix product over tiles of C that depend on the sizes alone. Each tile is one
/// product of Eigen's in one thread.
template <class T>
void matmul(const Matmul& p, T alpha, const T* a, const T* b, T beta, T* c) {
  if (p.m == 0 || p.n == 0) return;
  const Index products = p.outer * p.inner;
  // Few products are cut into tiles; a tile keeps enough work to pay for packing its operands.
  constexpr Index tile_work = Index{1} << 20;
  Index tile_rows = p.m, tile_cols = p.n;
  if (products < 8) {
    if (p.m >= p.n)
      tile_rows =
          std::clamp(tile_work / std::max<Index>(1, p.n * p.k), std::min<Index>(p.m, 32), p.m);
    else
      tile_cols =
          std::clamp(tile_work / std::max<Index>(1, p.m * p.k), std::min<Index>(p.n, 32), p.n);
  }
  const Index row_tiles = (p.m + tile_rows - 1) / tile_rows;
  const Index col_tiles = (p.n + tile_cols - 1) / tile_cols;
  const Index tiles = row_tiles * col_tiles;
  const Index work = std::max<Index>(1, tile_rows * tile_cols * std::max<Index>(p.k, 1));
  const Index grain = std::max<Index>(1, (Index{1} << 18) / work);
  parallel_for(products * tiles, grain, [&](Index begin, Index end) {
    const OneThread guard;
    for (Index job = begin; job < end; ++job) {
      const Index outer = job / tiles / p.inner, inner = job / tiles % p.inner;
      const Index row = job % tiles / col_tiles * tile_rows,
                  col = job % tiles % col_tiles * tile_cols;
      const Index rows = std::min(tile_rows, p.m - row), cols = std::min(tile_cols, p.n - col);
      const T* const ta =
          a + outer * p.a.outer + inner * p.a.inner + (p.a.transposed ? row : row * p.a.leading);
      const T* const tb =
          b + outer * p.b.outer + inner * p.b.inner + (p.b.transposed ? col * p.b.leading : col);
      T* const tc = c + outer * p.c.outer + inner * p.c.inner + row * p.c.leading + col;
      const ConstStrided<T> ma(ta, p.a.transposed ? p.k : rows, p.a.transposed ? rows : p.k,
                               Eigen::OuterStride<>(p.a.leading));
      const ConstStrided<T> mb(tb, p.b.transposed ? cols : p.k, p.b.transposed ? p.k : cols,
                               Eigen::OuterStride<>(p.b.leading));
      multiply<T>(p.a.transposed, p.b.transposed, alpha, ma, mb, beta,
                  Strided<T>(tc, rows, cols, Eigen::OuterStride<>(p.c.leading)));
    }
  });
}

/// A (n, n) becomes its lower Cholesky factor, B (n, m) becomes A^-1 B; false if A is not s.p.d.
template <class T>
bool cholesky_solve(Index n, Index m, T* a, T* b) {
  using Matrix = Eigen::Map<RowMajor<T>>;
  const OneThread guard;
  Matrix matrix(a, n, n);
  Eigen::Ref<RowMajor<T>> in_place(matrix);  // an lvalue: of a temporary, Eigen makes a copy
  Eigen::LLT<Eigen::Ref<RowMajor<T>>> factor(in_place);
  if (factor.info() != Eigen::Success) return false;
  // Eigen lets NaN and infinity pass; every one in the lower triangle has reached the diagonal.
  for (Index i = 0; i < n; ++i)
    if (!std::isfinite(a[i * n + i])) return false;
  Matrix rhs(b, n, m);
  factor.solveInPlace(rhs);
  return true;
}

}  // namespace infty::detail
