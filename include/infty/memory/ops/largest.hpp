// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

#include <infty/core/error.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/number.hpp>
#include <infty/core/state.hpp>
#include <infty/core/tensor.hpp>
#include <infty/core/verify.hpp>
#include <infty/signal/ridge_cache.hpp>

namespace infty::detail {

/// The largest |x| of each coordinate in what was written, with new vectors: NaN where one is.
/// @param before  [batch, d]
/// @param x       [batch, L, d], of each row the last `counts`, in front of them zeros
/// @return        [batch, d]
template <class T, class B>
Tensor<T, B> largest_with(const Tensor<T, B>& before, const Tensor<T, B>& x) {
  const Index batch = x.dim(0), length = x.dim(1), d = x.dim(2);
  auto largest = before.clone();
  // Bands of columns: vector code on a CPU, a thread a column where there are many.
  constexpr Index band = many_threads<B> ? 1 : 64;
  const Index bands = (d + band - 1) / band;
  T* const to = largest.data();
  const T* const from = x.data();
  B::for_each_row(batch * bands, length * band, [=] INFTY_HOST_DEVICE(Index at) {
    const Index row = at / bands, begin = at % bands * band;
    const Index wide = d - begin < band ? d - begin : band;
    T most[band];
    typename math::detail::FloatBits<T>::Unsigned spoilt[band];  // its first bit: x is not finite
    for (Index j = 0; j < wide; ++j) {
      most[j] = to[row * d + begin + j];
      spoilt[j] = 0;
    }
    for (Index i = 0; i < length; ++i) {
      const T* const v = from + (row * length + i) * d + begin;
      for (Index j = 0; j < wide; ++j) {
        const auto bits = math::detail::size_bits(v[j]);
        const T size = std::bit_cast<T>(bits);
        most[j] = size > most[j] ? size : most[j];
        spoilt[j] |= math::detail::spill(bits);
      }
    }
    for (Index j = 0; j < wide; ++j)
      to[row * d + begin + j] = math::detail::spilt(spoilt[j]) ? math::not_a_number<T> : most[j];
  });
  return largest;
}

/// The largest |x| that all of these writes can take in. @param written  [batch], vectors before
template <class T, class B, class Psi>
T largest_writable(const RidgeCache<T, B, Psi>& cache, const RowCounts& written,
                   const RowCounts& counts) {
  double most = static_cast<double>((std::numeric_limits<T>::max)());
  if (!cache.settings().bounded) return static_cast<T>(most);
  for (std::size_t row = 0; row < counts.size(); ++row) {
    if (counts[row] == 0 ||
        (row > 0 && counts[row] == counts[row - 1] && written[row] == written[row - 1]))
      continue;
    most =
        (std::min)(most, written[row] == 0 ? cache.first_limits(counts[row]).largest
                                           : cache.next(counts[row], written[row]).limits.largest);
  }
  return static_cast<T>(most);
}

/// The largest |x| that every fit of a bounded cache can take in: of `rows` vectors and functions
/// or more. For what rounding adds to Λ is the reach of a fit times `rows` epsilon, and Λ is at
/// most `most_lebesgue`.
template <class T>
T surely_writable(Index rows) {
  const double reach = most_lebesgue / (static_cast<double>(rows) *
                                        static_cast<double>(std::numeric_limits<T>::epsilon()));
  return static_cast<T>(static_cast<double>((std::numeric_limits<T>::max)()) /
                        (4 * most_run * (1 + reach)));
}

/// @throws infty::NonFiniteError that names `op`, row and coordinate unless all of largest [batch,
/// d] are numbers up to `most`
template <class T, class B>
void require_writable(const char* op, const Tensor<T, B>& largest, T most) {
  const T* const c = largest.data();
  verify<B>(
      largest.size(),
      [=] INFTY_HOST_DEVICE(Index i) { return !math::is_finite_at(c + i) || c[i] > most; },
      [op, largest, most](Index i) {
        const T value = largest.reshape(Shape{largest.size()}).slice(i, i + 1).item();
        const Index d = largest.dim(1);
        if (math::is_nan(value))
          raise<NonFiniteError>(op, "coordinate ", i % d, " of a vector of row ", i / d,
                                " is not finite");
        raise<NonFiniteError>(op, "coordinate ", i % d, " of a vector of row ", i / d, " is ",
                              value, ": coefficients would overflow above ", most);
      });
}

}  // namespace infty::detail
