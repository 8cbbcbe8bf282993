// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <infty/core/backend.hpp>
#include <infty/core/config.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/matrix_product.hpp>
#include <infty/signal/ridge.hpp>

// How far a fitted signal can exceed what was fitted. The signal of values v_i is
// X(t) = sum_i (G_i . psi(t)) v_i, so that |X(t)| <= Λ max_i |v_i| with the Lebesgue constant of
// the fit, Λ = max_t sum_i |G_i . psi(t)|. docs/stability.md has what follows from it.

namespace infty {

/// The most by which a bounded memory's fit may exceed what it is fitted to. A write whose Λ is
/// larger is given a larger penalty; of the papers' experiments none is (their Λ are 1.9 to 2.6).
inline constexpr double most_lebesgue = 8;

/// The most by which equal writes in a row may exceed all that was written, where they are one
/// matrix each, B' = A B + Gᵀ X; where more could happen, the old signal is sampled and clamped.
inline constexpr double most_run = 64;

/// The sizes of a fit G [n, N].
struct FitSize {
  double lebesgue = 0;  ///< Λ, found to within a hundredth of it
  double reach = 0;     ///< most of sum_i |G_ij| and of sum_j |psi_j(t)| sum_i |G_ij|
};

namespace detail {

/// Places of [0, 1], rising, between which no combination of a basis hides a maximum: four to a
/// width about every centre; of a basis without, sixteen a function, both evenly and as the
/// cosines of an even angle, which are as dense at the ends as polynomials need it.
template <Basis Psi>
std::vector<double> probe_places(const Psi& psi) {
  std::vector<double> t;
  double nearest = 1;  // places nearer to each other tell nothing new
  const Index even = 256;
  if constexpr (CentredBasis<Psi>) {
    for (Index j = 0; j < psi.size(); ++j) {
      const auto centre = static_cast<double>(psi.centre(j)),
                 width = static_cast<double>(psi.width(j));
      nearest = (std::min)(nearest, width / 8);
      for (int k = -10; k <= 10; ++k) t.push_back(std::clamp(centre + k * width / 4, 0.0, 1.0));
    }
  } else {
    nearest = 0;
    const Index count = 16 * psi.size();
    for (Index i = 0; i < count; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(count);
      t.push_back(share);
      t.push_back((1 - std::cos(std::numbers::pi * share)) / 2);
    }
  }
  for (Index i = 0; i <= even; ++i) t.push_back(static_cast<double>(i) / static_cast<double>(even));
  std::sort(t.begin(), t.end());
  std::vector<double> kept{0};
  for (const double at : t)
    if (at > kept.back() && at >= kept.back() + nearest) kept.push_back(at);
  if (kept.back() < 1) kept.push_back(1);
  return kept;
}

/// sums[i] = sum_j |x(i, j)| of x [rows, columns].
template <class B>
std::vector<double> absolute_row_sums(const Tensor<double, B>& x) {
  const Index rows = x.dim(0), columns = x.dim(1);
  Tensor<double, B> sums({rows});
  double* const to = sums.data();
  const double* const from = x.data();
  B::for_each_row(rows, columns, [=] INFTY_HOST_DEVICE(Index i) {
    double sum = 0;
    for (Index j = 0; j < columns; ++j) sum += std::fabs(from[i * columns + j]);
    to[i] = sum;
  });
  return sums.to_vector();
}

/// Multiplies the rows of x [rows, columns] by a factor each.
template <class B>
void scale_rows(Tensor<double, B>& x, const std::vector<double>& factors) {
  const Index columns = x.dim(1);
  const auto by = Tensor<double, B>::from({x.dim(0)}, factors);
  double* const to = x.data();
  const double* const factor = by.data();
  B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) { to[i] *= factor[i / columns]; });
}

inline double largest_of(const std::vector<double>& x) {
  double most = 0;
  for (const double v : x) most = math::is_nan(v) || v > most ? v : most;
  return most;
}

}  // namespace detail

/// Computes Λ and reach of a fit. @param G  [n, N], as `ridge_matrix` gives it
template <class B, Basis Psi>
FitSize fit_size(const Psi& psi, const Tensor<double, B>& G) {
  const Index N = G.dim(1);
  const auto gain = detail::absolute_row_sums(detail::transposed(G));
  FitSize size{0, detail::largest_of(gain)};
  const auto places = detail::probe_places(detail::in_double(psi));
  constexpr Index piece = 256;
  const auto count = static_cast<Index>(places.size());
  for (Index begin = 0; begin < count; begin += piece) {
    const Index p = (std::min)(piece, count - begin);
    const auto F = detail::design_matrix<B>(psi, places.data() + begin, p);  // [N, p]
    const double of_piece =
        detail::largest_of(detail::absolute_row_sums(detail::matrix_product(F, true, G, true)));
    size.lebesgue = of_piece <= size.lebesgue ? size.lebesgue : of_piece;
    const auto values = F.to_vector();
    for (Index i = 0; i < p; ++i) {
      double sum = 0;
      for (Index j = 0; j < N; ++j)
        sum += std::fabs(values[static_cast<std::size_t>(j * p + i)]) *
               gain[static_cast<std::size_t>(j)];
      size.reach = sum <= size.reach ? size.reach : sum;
    }
  }
  return size;
}

/// The most by which the samples v of a signal can exceed all that was written, in any number of
/// writes v' = S v + C x in a row: |v| <= (h + s |v_0|) max |x| with s = sup_k |S^k| and
/// h = sum_k |S^k C|, row by row. The first powers are summed as they are, the others by doubling,
/// sum_{j < 2k} |S^j C| <= (1 + |S^k|) sum_{j < k} |S^j C|, so that h is no less than the sum.
struct RunSize {
  double of_new = math::infinity<double>;  ///< h; infinite where nothing is proven
  double of_old = math::infinity<double>;  ///< s
};

/// Computes how far writes in a row can carry a signal, s and h of docs/stability.md.
/// @param S  [M, M], what a write makes of the samples
/// @param C  [M, L], what it makes of new vectors
template <class B>
RunSize run_size(const Tensor<double, B>& S, const Tensor<double, B>& C) {
  constexpr double hopeless = 1e4;
  const auto rows = static_cast<std::size_t>(S.dim(0));
  auto of_new = C, power = S;  // S^k C, then S^k
  std::vector<double> h(rows, 0);
  RunSize run{0, 1};
  for (int k = 0; k < 4; ++k) {  // leaves h for S^0 to S^3, and S^4
    const auto sums = detail::absolute_row_sums(of_new);
    for (std::size_t i = 0; i < rows; ++i) h[i] += sums[i];
    run.of_old = (std::max)(run.of_old, detail::largest_of(detail::absolute_row_sums(power)));
    if (k == 3) break;
    of_new = detail::matrix_product(S, false, of_new, false);
    power = detail::matrix_product(S, false, power, false);
  }
  for (int doubling = 0; doubling < 60; ++doubling) {
    const auto p = power.to_vector();
    std::vector<double> more(rows, 0);
    double norm = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < rows; ++j) {
        sum += std::fabs(p[i * rows + j]);
        more[i] += std::fabs(p[i * rows + j]) * h[j];
      }
      norm = sum <= norm ? norm : sum;
    }
    for (std::size_t i = 0; i < rows; ++i) h[i] += more[i];
    run.of_old = (std::max)(run.of_old, norm * run.of_old);
    run.of_new = detail::largest_of(h);
    if (!math::is_finite(run.of_new) || !math::is_finite(run.of_old) || run.of_new >= hopeless ||
        run.of_old >= hopeless)
      return {};
    if (norm <= 1e-9) return run;
    power = detail::matrix_product(power, false, power, false);
  }
  return {};
}

/// Computes the spectral radius of S [M, M], by squaring: the limit of |S^k|^(1/k), to some parts
/// in 10^6. Infinity or NaN where the sums of S's rows are.
template <class B>
double spectral_radius(const Tensor<double, B>& S) {
  auto power = S.clone();
  double logarithm = 0, share = 1;  // of |S^k|, and 1 / k
  for (int squaring = 0; squaring < 24; ++squaring) {
    const double norm = detail::largest_of(detail::absolute_row_sums(power));
    if (norm == 0 || !math::is_finite(norm)) return norm;
    logarithm += share * std::log(norm);
    double* const p = power.data();
    B::for_each(power.size(), [=] INFTY_HOST_DEVICE(Index i) { p[i] /= norm; });
    power = detail::matrix_product(power, false, power, false);
    share /= 2;
  }
  return std::exp(logarithm);
}

}  // namespace infty
