// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <infty/core/backend.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/finite.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/matrix_product.hpp>
#include <infty/signal/positions.hpp>

namespace infty {

namespace detail {

/// Returns the basis in double, in which every ridge regression is solved.
template <Basis Psi>
auto in_double(const Psi& psi) {
  if constexpr (requires { psi.template cast<double>(); }) {
    return psi.template cast<double>();
  } else {
    return psi;
  }
}

/// F [N, n] with F(j, i) = psi_j(t_i), in double; tails as by `math::without_tail`.
template <class B, Basis Psi>
Tensor<double, B> design_matrix(const Psi& psi, const double* t, Index n) {
  const auto exact = in_double(psi);
  using T = typename decltype(exact)::Scalar;
  const auto at = Tensor<double, B>::from({n}, t);
  Tensor<double, B> F({psi.size(), n});
  double* const to = F.data();
  const double* const from = at.data();
  for_each_element<B>(psi.size(), n, [=] INFTY_HOST_DEVICE(Index j, Index i) {
    to[j * n + i] = math::without_tail<double>(exact(j, static_cast<T>(from[i])));
  });
  return F;
}

/// F Fᵀ + penalty I over all positions, [N, N].
template <class B, Basis Psi>
Tensor<double, B> normal_matrix(const Psi& psi, const Positions& positions, double penalty) {
  require(math::is_finite(penalty) && penalty > 0, "ridge_matrix", "penalty is ", penalty,
          ": it must be positive and finite");
  const Index N = psi.size();
  auto A = Tensor<double, B>::zeros({N, N});
  double* const a = A.data();
  // In pieces: F of a million positions would not fit. Its lower triangle, by blocks of columns.
  constexpr Index piece = 8192, block = 256;
  for (const auto* group : {&positions.before, &positions.inside, &positions.after}) {
    const auto count = static_cast<Index>(group->size());
    for (Index begin = 0; begin < count; begin += piece) {
      const Index n = (std::min)(piece, count - begin);
      const auto F = design_matrix<B>(psi, group->data() + begin, n);
      for (Index j = 0; j < N; j += block)
        B::matmul(Matmul{.m = N - j,
                         .n = (std::min)(block, N - j),
                         .k = n,
                         .a = {.leading = n},
                         .b = {.leading = n, .transposed = true},
                         .c = {.leading = N}},
                  1.0, F.data() + j * n, F.data() + j * n, 1.0, a + j * N + j);
    }
  }
  for_each_element<B>(N, N, [=] INFTY_HOST_DEVICE(Index i, Index j) {
    if (j / block > i / block) a[i * N + j] = a[j * N + i];
    if (j == i) a[i * N + i] += penalty;
  });
  return A;
}

/// Makes X [N, m] into A^-1 X; A is lost. @throws infty::ValueError if A is not finite or s.p.d.
template <class B>
void solve_normal(Tensor<double, B>& A, Tensor<double, B>& X) {
  require(all_finite(A), "ridge_matrix",
          "F Fᵀ + λI is not finite in double: a function is too large at a position, or no number");
  require(B::cholesky_solve(A.dim(0), X.dim(1), A.data(), X.data()), "ridge_matrix",
          "F Fᵀ + λI is not positive definite in double: the penalty is too small");
}

/// Largest eigenvalue of a symmetric positive definite A [n, n] = tr(A P) / tr(P), with P the
/// powers A^(2^i) by squaring: the trace weighs every eigenvalue by its own power, so that
/// neither a cluster at the top nor an unlucky first vector can spoil it.
template <class B>
double largest_eigenvalue(const Tensor<double, B>& A) {
  const Index n = A.dim(0);
  // Of numbers about 1, so that no product overflows or vanishes; by a power of 2, which is exact.
  auto scaled = A.clone();
  double* const of_scaled = scaled.data();
  const double largest =
      B::reduce(n, 0.0, Larger{}, [=] INFTY_HOST_DEVICE(Index k) { return of_scaled[k * n + k]; });
  const double size = std::ldexp(1, std::ilogb(largest));
  B::for_each(n * n, [=] INFTY_HOST_DEVICE(Index k) { of_scaled[k] /= size; });
  auto P = scaled.clone();
  Tensor<double, B> square({n, n});
  const double* const a = of_scaled;
  double estimate = 0;
  constexpr int most_squarings = 30;  // the error is below ln(n) / 2^30 even without any gap
  for (int i = 0; i < most_squarings; ++i) {
    double* const p = P.data();
    const auto add = [] INFTY_HOST_DEVICE(double x, double y) { return x + y; };
    const double trace =
        B::reduce(n, 0.0, add, [=] INFTY_HOST_DEVICE(Index k) { return p[k * n + k]; });
    const double weighted =
        B::reduce(n * n, 0.0, add, [=] INFTY_HOST_DEVICE(Index k) { return a[k] * p[k]; });
    const double before = estimate;
    estimate = weighted / trace;
    if (std::fabs(estimate - before) <= 1e-13 * estimate) break;
    B::for_each(n * n, [=] INFTY_HOST_DEVICE(Index k) { p[k] /= trace; });
    B::matmul(
        Matmul{
            .m = n, .n = n, .k = n, .a = {.leading = n}, .b = {.leading = n}, .c = {.leading = n}},
        1.0, P.data(), P.data(), 0.0, square.data());
    std::swap(P, square);
  }
  return estimate * size;
}

}  // namespace detail

/// Solves for the matrix G of the ridge fit B = Gᵀ X with G = ((F Fᵀ + λI)^-1 F)ᵀ, F(j, i) =
/// psi_j(t_i) over all positions, of which only those inside carry vectors; by Cholesky in double,
/// whatever the scalar of psi   [Martins et al. 2022, Eq. 5, 23].
/// @param penalty  λ > 0
/// @return         [positions.inside, N]
/// @throws infty::ValueError if there is no position inside, penalty is not positive and finite, or
/// so small that F Fᵀ + λI is not positive definite in double, or that is not finite
/// @post   (F Fᵀ + λI) Gᵀ == F within rounding times the condition number
template <class B, Basis Psi>
Tensor<double, B> ridge_matrix(const Psi& psi, const Positions& positions, double penalty) {
  const auto n = static_cast<Index>(positions.inside.size());
  require(n >= 1, "ridge_matrix", "there is no position inside");
  auto A = detail::normal_matrix<B>(psi, positions, penalty);
  auto X = detail::design_matrix<B>(psi, positions.inside.data(), n);
  detail::solve_normal(A, X);
  return detail::transposed(X);
}

/// Computes the condition number of F Fᵀ + λI in the 2-norm, largest eigenvalue over smallest; the
/// cost is some dozens of products of N x N matrices.
/// @throws infty::ValueError if penalty is not positive and finite, or so small that F Fᵀ + λI is
/// not positive definite in double, or that is not finite
template <class B, Basis Psi>
double condition_number(const Psi& psi, const Positions& positions, double penalty) {
  const auto A = detail::normal_matrix<B>(psi, positions, penalty);
  const Index N = psi.size();
  auto factor = A.clone();
  auto inverse = Tensor<double, B>::zeros({N, N});
  double* const to = inverse.data();
  B::for_each(N, [=] INFTY_HOST_DEVICE(Index i) { to[i * N + i] = 1; });
  detail::solve_normal(factor, inverse);
  return detail::largest_eigenvalue(A) * detail::largest_eigenvalue(inverse);
}

}  // namespace infty
