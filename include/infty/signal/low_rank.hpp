// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <infty/core/backend.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/random.hpp>
#include <infty/core/shape.hpp>
#include <infty/core/tensor.hpp>
#include <infty/signal/matrix_product.hpp>

namespace infty {

/// A matrix [m, n] as the product of two thin ones, which vectors are multiplied with by r (m + n)
/// multiplications and not m n. Empty where these would not be fewer.
template <class T, class B>
struct LowRank {
  Tensor<T, B> left;   ///< [m, r]
  Tensor<T, B> right;  ///< [r, n]

  /// Returns r; 0 if there are no factors.
  Index rank() const { return left.empty() ? 0 : left.dim(1); }
  /// Returns the bytes of both.
  std::size_t bytes() const { return left.bytes() + right.bytes(); }
};

namespace detail {

/// |M|, the root of the sum of squares.
template <class B>
double frobenius_norm(const Tensor<double, B>& M) {
  const double* const x = M.data();
  return std::sqrt(B::reduce(
      M.size(), 0.0, [] INFTY_HOST_DEVICE(double a, double b) { return a + b; },
      [=] INFTY_HOST_DEVICE(Index i) { return x[i] * x[i]; }));
}

/// Orthonormal columns that span those of Y [m, b], by Gram and Schmidt, twice; one that those
/// before it span within ten digits becomes zeros.
template <class B>
Tensor<double, B> orthonormal_columns(const Tensor<double, B>& Y) {
  const Index m = Y.dim(0), b = Y.dim(1);
  auto columns = Y.to_vector();
  double* const q = columns.data();
  const auto inner = [&](Index j, Index k) {
    double sum = 0;
    for (Index i = 0; i < m; ++i) sum += q[i * b + j] * q[i * b + k];
    return sum;
  };
  for (Index j = 0; j < b; ++j) {
    const double before = inner(j, j);
    for (int pass = 0; pass < 2; ++pass)
      for (Index k = 0; k < j; ++k) {
        const double along = inner(k, j);
        for (Index i = 0; i < m; ++i) q[i * b + j] -= along * q[i * b + k];
      }
    const double after = inner(j, j);
    constexpr double lost = 1e-20;  // of a square
    const double scale = after > lost * before ? 1 / std::sqrt(after) : 0;
    for (Index i = 0; i < m; ++i) q[i * b + j] *= scale;
  }
  return Tensor<double, B>::from(Y.shape(), q);
}

/// n directions of b signs each, of the given number.
template <class B>
Tensor<double, B> random_signs(Index n, Index b, Index number) {
  Tensor<double, B> out({n, b});
  double* const to = out.data();
  B::for_each(n * b, [=] INFTY_HOST_DEVICE(Index i) {
    to[i] = uniform_at(0, static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(i)) < .5
                ? -1
                : 1;
  });
  return out;
}

/// Finds what `low_rank` does of M, of which `rest` leaves what is left.
template <class T, class B>
LowRank<T, B> low_rank_leaving(Tensor<double, B>& rest) {
  constexpr Index block = 8;
  constexpr double share =
      (std::max)(static_cast<double>(std::numeric_limits<T>::epsilon()) / 8, 0x1p-50);
  const Index m = rest.dim(0), n = rest.dim(1), most = rest.empty() ? 0 : 2 * m * n / (3 * (m + n));
  const double size = frobenius_norm(rest), enough = share * size;
  LowRank<T, B> found;
  // No element of the factors is larger than `size`.
  if (most < block || !(size <= static_cast<double>((std::numeric_limits<T>::max)()))) return found;
  const auto project = [](const Tensor<double, B>& q, Tensor<double, B>& from) {
    auto along = matrix_product(q, true, from, false);
    multiply_into(-1.0, q, false, along, false, 1.0, from);
    return along;
  };
  std::vector<Tensor<double, B>> left, right;
  for (Index rank = 0; frobenius_norm(rest) > enough; rank += block) {
    if (rank + block > most) return found;
    auto q =
        orthonormal_columns(matrix_product(rest, false, random_signs<B>(n, block, rank), false));
    for (const auto& before : left) project(before, q);  // of which rounding has left some
    q = orthonormal_columns(q);
    right.push_back(project(q, rest));
    left.push_back(std::move(q));
  }
  if (left.empty()) return found;
  const Index rank = block * static_cast<Index>(left.size());
  found.left = Tensor<T, B>({m, rank});
  found.right = Tensor<T, B>({rank, n});
  T *const l = found.left.data(), *const r = found.right.data();
  for (std::size_t k = 0; k < left.size(); ++k) {
    const Index first = static_cast<Index>(k) * block;
    const double *const of_left = left[k].data(), *const of_right = right[k].data();
    B::for_each(m * block, [=] INFTY_HOST_DEVICE(Index i) {
      l[i / block * rank + first + i % block] = static_cast<T>(of_left[i]);
    });
    B::for_each(block * n,
                [=] INFTY_HOST_DEVICE(Index i) { r[first * n + i] = static_cast<T>(of_right[i]); });
  }
  return found;
}

}  // namespace detail

/// Finds thin factors of M by a random search for the space of its columns, a block of directions
/// at a time, each of what those before it leave   [Martinsson, Voronin 2016, "A randomized blocked
/// algorithm", Alg. randQB_b]. It ends when |M - left right|, the root of the sum of squares, which
/// is computed and not estimated, is below |M| epsilon / 8 of the factors in double, before these
/// are rounded to T: less than rounding the elements of M to T would change. Of a T with more
/// digits, below |M| 2^-50.
/// @param M  [m, n]
/// @return   factors of at most two thirds of m n elements, or none
/// @throws infty::ShapeError if M is no matrix
template <class T, class B>
LowRank<T, B> low_rank(const Tensor<double, B>& M) {
  require<ShapeError>(M.rank() == 2, "low_rank", "M is ", M.shape(), ": it must be [m, n]");
  auto rest = M.clone();
  return detail::low_rank_leaving<T>(rest);
}

}  // namespace infty
