// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/eigen/include.hpp>

// One matrix product in one thread: the seam at which a library takes Eigen's place. Define
// INFTY_ONEDNN to have oneDNN multiply floats, or INFTY_BLAS for a BLAS with a cblas.h (CMake's
// options of the same names find and link them).
#if defined(INFTY_ONEDNN)
#include <dnnl.h>
#elif defined(INFTY_BLAS)
#include <cblas.h>
#endif

namespace infty::detail {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Strided = Eigen::Map<RowMajor<T>, 0, Eigen::OuterStride<>>;
template <class T>
using ConstStrided = Eigen::Map<const RowMajor<T>, 0, Eigen::OuterStride<>>;

/// An operand as stored: rows `leading` elements apart, and to be transposed if it says so.
template <class T>
struct GemmOperand {
  const T* data;
  Index leading;
  bool transposed;
};

/// The library that multiplies matrices of T.
template <class T>
constexpr const char* gemm_library() {
#if defined(INFTY_ONEDNN)
  if (std::is_same_v<T, float>) return "oneDNN";
#elif defined(INFTY_BLAS)
  if (std::is_floating_point_v<T>) return "BLAS";
#endif
  return "Eigen";
}

/// c (m, n) = alpha a b + beta c by Eigen; beta 0 overwrites, whatever c held.
template <class T>
void eigen_gemm(Index m, Index n, Index k, T alpha, GemmOperand<T> a, GemmOperand<T> b, T beta,
                T* c, Index ldc) {
  Strided<T> to(c, m, n, Eigen::OuterStride<>(ldc));
  if (beta == T(0)) {
    to.setZero();
  } else if (beta != T(1)) {
    to *= beta;
  }
  if (k == 0) return;
  const ConstStrided<T> x(a.data, a.transposed ? k : m, a.transposed ? m : k,
                          Eigen::OuterStride<>(a.leading));
  const ConstStrided<T> y(b.data, b.transposed ? n : k, b.transposed ? k : n,
                          Eigen::OuterStride<>(b.leading));
  if (a.transposed && b.transposed) {
    to.noalias() += alpha * (x.transpose() * y.transpose());
  } else if (a.transposed) {
    to.noalias() += alpha * (x.transpose() * y);
  } else if (b.transposed) {
    to.noalias() += alpha * (x * y.transpose());
  } else {
    to.noalias() += alpha * (x * y);
  }
}

/// c (m, n) = alpha a b + beta c, m, n >= 1, by the library that was chosen.
template <class T>
void gemm(Index m, Index n, Index k, T alpha, GemmOperand<T> a, GemmOperand<T> b, T beta, T* c,
          Index ldc) {
#if defined(INFTY_ONEDNN)
  if constexpr (std::is_same_v<T, float>) {
    // A product with nothing to sum is refused.
    if (k > 0 && dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha,
                            a.data, a.leading, b.data, b.leading, beta, c, ldc) == dnnl_success)
      return;
  }
#elif defined(INFTY_BLAS)
  const auto transpose = [](bool on) { return on ? CblasTrans : CblasNoTrans; };
  const auto size = [](Index i) { return static_cast<int>(i); };
  if constexpr (std::is_same_v<T, float>)
    return cblas_sgemm(CblasRowMajor, transpose(a.transposed), transpose(b.transposed), size(m),
                       size(n), size(k), alpha, a.data, size(a.leading), b.data, size(b.leading),
                       beta, c, size(ldc));
  if constexpr (std::is_same_v<T, double>)
    return cblas_dgemm(CblasRowMajor, transpose(a.transposed), transpose(b.transposed), size(m),
                       size(n), size(k), alpha, a.data, size(a.leading), b.data, size(b.leading),
                       beta, c, size(ldc));
#endif
  eigen_gemm(m, n, k, alpha, a, b, beta, c, ldc);
}

}  // namespace infty::detail
