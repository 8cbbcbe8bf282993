// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <infty/core/backend.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/shape.hpp>
#include <infty/core/tensor.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/expectation.hpp>
#include <infty/signal/low_rank.hpp>

// Contraction. The signal X(t) = Bᵀ psi(t) of the past, on [0, 1], is squeezed into [0, tau]:
// X'(t) = X(t / tau) for t <= tau [Martins et al. 2022, Eq. 13]. It is sampled at M locations t_m
// and the samples, placed at tau m / M, are fitted together with the new vectors, placed behind
// them [Eq. 14, 15]; `next_positions` are these places. Sticky memories choose other t_m than m /
// M.

namespace infty {

/// Returns the locations m / samples, m = 1, ..., samples, that sample a signal evenly [Martins et
/// al. 2022, §3.2].
/// @return [samples]
/// @throws infty::ValueError if samples < 1
template <class T, class B>
Tensor<T, B> even_locations(Index samples) {
  require_at_least("even_locations", "samples", samples, 1);
  Tensor<T, B> out({samples});
  T* const to = out.data();
  const T count = static_cast<T>(samples);
  B::for_each(samples, [=] INFTY_HOST_DEVICE(Index m) { to[m] = static_cast<T>(m + 1) / count; });
  return out;
}

namespace detail {

/// Rows of vectors, [batch, n, e], of which the vectors of one lie together.
template <class T>
struct VectorRows {
  T* data;
  Index vectors;  ///< n
  Index stride;   ///< from one row to the next, n e where they lie behind each other
};

template <class T, class B>
VectorRows<const T> rows_of(const Tensor<T, B>& x) {
  return {x.data(), x.dim(1), x.dim(1) * x.dim(2)};
}
template <class T, class B>
VectorRows<T> rows_of(Tensor<T, B>& x) {
  return {x.data(), x.dim(1), x.dim(1) * x.dim(2)};
}

/// y [batch, m, e] = op(A) x + beta y, row by row, for a contiguous A.
template <class T, class B>
void multiply_rows(const Tensor<T, B>& A, bool transposed, Index batch, Index e,
                   const VectorRows<const T>& x, T beta, const VectorRows<T>& y) {
  B::matmul(Matmul{.m = y.vectors,
                   .n = e,
                   .k = x.vectors,
                   .a = {.leading = A.dim(1), .transposed = transposed},
                   .b = {.leading = e, .outer = x.stride},
                   .c = {.leading = e, .outer = y.stride},
                   .outer = batch},
            T(1), A.data(), x.data, beta, y.data);
}

/// The same by the factors of op(A), or of its transpose, if there are any.
template <class T, class B>
void multiply_rows(const Tensor<T, B>& A, bool transposed, const LowRank<T, B>& factors,
                   bool transpose_factors, Index batch, Index e, const VectorRows<const T>& x,
                   T beta, const VectorRows<T>& y) {
  const Index r = factors.rank();
  if (r == 0) return multiply_rows(A, transposed, batch, e, x, beta, y);
  Tensor<T, B> between({batch, r, e});
  const VectorRows<T> thin{between.data(), r, r * e};
  multiply_rows(transpose_factors ? factors.left : factors.right, transpose_factors, batch, e, x,
                T(0), thin);
  multiply_rows(transpose_factors ? factors.right : factors.left, transpose_factors, batch, e,
                VectorRows<const T>{thin.data, r, thin.stride}, beta, y);
}

template <class T, class B>
void require_vectors(const char* op, const char* name, const Tensor<T, B>& X, Index rows,
                     const char* rule) {
  require<ShapeError>(X.rank() == 3 && X.dim(1) == rows, op, name, " are ", X.shape(),
                      ": they must be [batch, ", rows, ", e], ", rule);
}

}  // namespace detail

/// Fits coefficients to X by ridge regression, B = Gᵀ X   [Martins et al. 2022, Eq. 5, 23].
/// @param G  [L, N], see ridge_matrix
/// @param X  [batch, L, e]
/// @return   [batch, N, e]
/// @throws infty::ShapeError if a shape does not fit
template <class T, class B>
Tensor<T, B> fit(const Tensor<T, B>& G, const Tensor<T, B>& X) {
  require<ShapeError>(G.rank() == 2, "fit", "G is ", G.shape(), ": it must be [L, N]");
  detail::require_vectors("fit", "vectors", X, G.dim(0), "one to each row of G");
  Tensor<T, B> out({X.dim(0), G.dim(1), X.dim(2)});
  detail::multiply_rows(G, true, X.dim(0), X.dim(2), detail::rows_of(X), T(0),
                        detail::rows_of(out));
  return out;
}

/// Computes the signal X(t) = Bᵀ psi(t) at M locations where the functions are known   [Martins et
/// al. 2022, Eq. 14].
/// @param F    psi at them, [M, N], shared by the batch, or [batch, M, N]
/// @param old  coefficients [batch, N, e]
/// @return     [batch, M, e]
/// @throws infty::ShapeError if a shape does not fit
template <class T, class B>
Tensor<T, B> resample(const Tensor<T, B>& F, const Tensor<T, B>& old) {
  const bool shared = F.rank() == 2;
  require<ShapeError>(shared || F.rank() == 3, "resample", "functions are ", F.shape(),
                      ": they must be [M, N] or [batch, M, N]");
  const Index M = F.dim(-2), N = F.dim(-1);
  detail::require_vectors("resample", "coefficients", old, N, "one to each basis function");
  const Index batch = old.dim(0), e = old.dim(2);
  require<ShapeError>(shared || F.dim(0) == batch, "resample", "functions are ", F.shape(),
                      " for coefficients ", old.shape(), ": they must be [M, N] or [batch, M, N]");
  Tensor<T, B> out({batch, M, e});
  B::matmul(Matmul{.m = M,
                   .n = e,
                   .k = N,
                   .a = {.leading = N, .outer = shared ? 0 : M * N},
                   .b = {.leading = e, .outer = N * e},
                   .c = {.leading = e, .outer = M * e},
                   .outer = batch},
            T(1), F.data(), old.data(), T(0), out.data());
  return out;
}

/// Computes the same at given locations.
/// @param t    [M], shared by the batch, or [batch, M]
/// @throws infty::ShapeError if a shape does not fit
template <Basis Psi, class B>
Tensor<typename Psi::Scalar, B> resample(const Psi& psi, const Tensor<typename Psi::Scalar, B>& old,
                                         const Tensor<typename Psi::Scalar, B>& t) {
  detail::require_vectors("resample", "coefficients", old, psi.size(),
                          "one to each basis function");
  require<ShapeError>(t.rank() == 1 || (t.rank() == 2 && t.dim(0) == old.dim(0)), "resample",
                      "locations are ", t.shape(), " for coefficients ", old.shape(),
                      ": they must be [M] or [batch, M]");
  return resample(evaluate(psi, t), old);
}

/// How a write of L vectors is fitted, and how far the signal can exceed what it is fitted to.
struct WriteLimits {
  Index points = 0;     ///< places that the vectors are held over, >= L
  double penalty = 0;   ///< λ, raised where a bounded memory's Λ would be too large
  double lebesgue = 0;  ///< Λ; 0 where it was not asked for, as for the next ones
  double largest = 0;   ///< vectors up to this size leave coefficients and sums over them finite
  double of_new = 0, of_old = 0;  ///< h and s of `RunSize`; infinite: nothing is proven
  bool multiplies = true;         ///< whether a write as long as the one before may be A B + Gᵀ X

  /// The most that |X(t)| can come to, over the largest |x|, behind any number of such writes in a
  /// row, B' = A B + Gᵀ X, where it was at most `before` in front of the first.
  double run(double before) const { return lebesgue * (std::max)(1.0, of_new + of_old * before); }
};

/// What a later write of L vectors needs, G of `next_positions` in two parts.
template <class T, class B>
struct NextMatrices {
  Tensor<T, B> next_old;  ///< [samples, N], the rows of G for the contracted past
  Tensor<T, B> next_new;  ///< [L, N], the rows for the new vectors, summed over their places
  Tensor<T, B> carry;     ///< A = next_oldᵀ psi(even locations), [N, N]
  WriteLimits limits;     ///< of such a write
  LowRank<T, B> thin_new, thin_carry;  ///< of next_newᵀ and A, by which a write goes if it has them
};

/// Writes to an evenly resampled signal: B' = A B + G_newᵀ X. Contraction, resampling and fit are
/// linear in the old coefficients, so that they are one matrix   [Martins et al. 2022, Eq. 13-15,
/// 5].
/// @param old  [batch, N, e]
/// @param X    new vectors [batch, L, e]
/// @return     [batch, N, e]
/// @throws infty::ShapeError if a shape does not fit
template <class T, class B>
Tensor<T, B> update(const NextMatrices<T, B>& next, const Tensor<T, B>& old,
                    const Tensor<T, B>& X) {
  const Index N = next.next_new.dim(1);
  detail::require_vectors("update", "coefficients", old, N, "one to each basis function");
  detail::require_vectors("update", "vectors", X, next.next_new.dim(0), "one to each row of G");
  require<ShapeError>(X.dim(0) == old.dim(0) && X.dim(2) == old.dim(2), "update", "vectors are ",
                      X.shape(), ", coefficients ", old.shape(), ": batch and width must agree");
  const Index e = old.dim(2);
  Tensor<T, B> out(old.shape());
  const Index batch = old.dim(0);
  detail::multiply_rows(next.carry, false, next.thin_carry, false, batch, e, detail::rows_of(old),
                        T(0), detail::rows_of(out));
  detail::multiply_rows(next.next_new, true, next.thin_new, false, batch, e, detail::rows_of(X),
                        T(1), detail::rows_of(out));
  return out;
}

/// Writes to a signal that is resampled where `t` says: B' = G_oldᵀ X(t) + G_newᵀ X   [Martins et
/// al. 2022, Eq. 13-15, 5]. With even locations it is the update without `t`.
/// @param t    [samples] or [batch, samples]
/// @param X    new vectors [batch, L, e]
/// @return     [batch, N, e]
/// @throws infty::ShapeError if a shape does not fit
template <Basis Psi, class B>
Tensor<typename Psi::Scalar, B> update(const NextMatrices<typename Psi::Scalar, B>& next,
                                       const Psi& psi, const Tensor<typename Psi::Scalar, B>& old,
                                       const Tensor<typename Psi::Scalar, B>& X,
                                       const Tensor<typename Psi::Scalar, B>& t) {
  using T = typename Psi::Scalar;
  const Index samples = next.next_old.dim(0);
  require<ShapeError>(t.rank() >= 1 && t.dim(-1) == samples, "update", "locations are ", t.shape(),
                      ": the last dimension must be ", samples, ", the number of samples");
  const auto past = resample(psi, old, t);  // [batch, samples, e]
  detail::require_vectors("update", "vectors", X, next.next_new.dim(0), "one to each row of G");
  require<ShapeError>(X.dim(0) == old.dim(0) && X.dim(2) == old.dim(2), "update", "vectors are ",
                      X.shape(), ", coefficients ", old.shape(), ": batch and width must agree");
  const Index batch = X.dim(0), e = X.dim(2);
  Tensor<T, B> out(old.shape());
  detail::multiply_rows(next.next_old, true, batch, e, detail::rows_of(past), T(0),
                        detail::rows_of(out));
  detail::multiply_rows(next.next_new, true, next.thin_new, false, batch, e, detail::rows_of(X),
                        T(1), detail::rows_of(out));
  return out;
}

}  // namespace infty
