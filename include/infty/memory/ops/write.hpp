// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>

#include <infty/autograd/tape.hpp>
#include <infty/core/state.hpp>
#include <infty/signal/ridge_cache.hpp>

namespace infty {

/// What a memory holds before a write, a row each.
template <class T, class B>
struct WrittenSignal {
  Variable<T, B> coefficients;  ///< B, [batch, N, d], of any value in fresh rows
  const RowCounts& written;     ///< vectors taken in; 0 is fresh
  // What follows is not used if the cache is not bounded.
  const RowCounts& writes;      ///< until now
  const RowCounts& last;        ///< vectors of the last write
  const Tensor<T, B>& largest;  ///< c, [batch, d], largest |x| until now
  /// Not null where the new signal is read and no write follows it: even samples are multiplied,
  /// not clamped. A B of all rows is kept here, [batch, N, d], and taken from here if it is not
  /// empty.
  Tensor<T, B>* only_read = nullptr;
};

namespace detail {

/// What becomes of the old signal in a write.
enum class OldSignal {
  kept,        ///< there are no new vectors
  none,        ///< the row is fresh
  multiplied,  ///< A B
  sampled,     ///< Gᵀ X(t), clamped where the memory is bounded
};

/// Rows [begin, end) that take in equally many vectors in the same way.
struct WriteRun {
  Index begin, end, length;
  OldSignal old;
  Index written;  ///< vectors before, of the first row; what the others' matrices are, too
};

/// Cuts the rows into runs that one matrix serves.
/// @param written     vectors before, 0 for fresh
/// @param multiplies  whether the write of a row that is not fresh is the product
/// @param alike       whether rows a and b, neither fresh, of equal counts, have the same matrices
template <class Multiplies, class Alike>
PoolVector<WriteRun> write_runs(const RowCounts& written, const RowCounts& counts,
                                Multiplies multiplies, Alike alike) {
  PoolVector<WriteRun> runs;
  for (std::size_t row = 0; row < counts.size(); ++row) {
    const Index at = static_cast<Index>(row), n = counts[row];
    const OldSignal old = n == 0              ? OldSignal::kept
                          : written[row] == 0 ? OldSignal::none
                          : multiplies(row)   ? OldSignal::multiplied
                                              : OldSignal::sampled;
    const bool later = old == OldSignal::multiplied || old == OldSignal::sampled;
    if (!runs.empty() && runs.back().length == n && runs.back().old == old &&
        (!later || alike(row - 1, row)))
      runs.back().end = at + 1;
    else
      runs.push_back({at, at + 1, n, old, written[row]});
  }
  return runs;
}

/// Holds samples [batch, M, d] of a signal to what was written: to [-c, c], coordinate by
/// coordinate. @param c  [batch, d]
template <class T, class B>
void clamp_samples(Tensor<T, B>& samples, const T* c) {
  const Index M = samples.dim(1), d = samples.dim(2);
  T* const x = samples.data();
  for_each_element<B>(samples.dim(0) * M, d, [=] INFTY_HOST_DEVICE(Index i, Index j) {
    const T most = c[i / M * d + j], v = x[i * d + j];
    x[i * d + j] = v > most ? most : (v < -most ? -most : v);
  });
}

}  // namespace detail

/// New coefficients from old ones and new vectors   [Martins et al. 2022, Eq. 5, 13-15, 23]. A
/// fresh row is fitted to its vectors, B = Gᵀ X; any other is contracted, sampled and fitted
/// together with them, B' = Gₚᵀ psi(t) B + Gᵀ X, which for evenly spaced locations t is one matrix,
/// B' = A B + Gᵀ X. No gradient flows to the old coefficients of a row that takes vectors in, as in
/// the authors' programs (docs/errata.md); to those of a row that takes none all of it does.
///
/// A bounded cache clamps the samples to what was written, [-c, c], unless the write is as long as
/// the one before, or that was the row's first, and any number of such writes in a row are proven
/// not to add up (`WriteLimits::run`), or the new signal is only read.
/// @param x          [B, L, d], aligned to the right
/// @param counts     [B], how many vectors of x a row takes in; a row of 0 keeps its coefficients
/// @param locations  [B, samples] in [0, 1], or empty for evenly spaced ones
/// @return           [B, N, d]
/// @post  of a bounded cache, |X(t)| <= `most_run` times the largest |x|, t in [0, 1]
/// @throws infty::ShapeError if the shapes do not fit, or a count is not in [0, L]
/// @throws infty::ValueError if a length of a bounded cache cannot be bounded
template <class T, class B, class Psi>
Variable<T, B> write_coefficients(const RidgeCache<T, B, Psi>& cache,
                                  const WrittenSignal<T, B>& before, const Variable<T, B>& x,
                                  const RowCounts& counts, const Tensor<T, B>& locations) {
  const Shape& kept = before.coefficients.shape();
  const Index N = cache.basis().size();
  require<ShapeError>(x.shape().rank() == 3 && kept == Shape{x.dim(0), N, x.dim(2)},
                      "write_coefficients", "x is ", x.shape(), ", the coefficients are ", kept,
                      ": they must be [B, L, d] and [B, ", N, ", d]");
  const Index batch = x.dim(0), length = x.dim(1), d = x.dim(2);
  for (const RowCounts* rows : {&counts, &before.written})
    require<ShapeError>(static_cast<Index>(rows->size()) == batch, "write_coefficients",
                        rows->size(), " counts for ", batch, " rows");
  for (const Index count : counts)
    require<ShapeError>(count >= 0 && count <= length, "write_coefficients", "a row takes in ",
                        count, " vectors of ", length);
  const Index row_size = N * d;
  const bool bounded = cache.settings().bounded;
  const auto multiplies = [&](std::size_t row) {
    if (!locations.empty() || !bounded || before.only_read) return locations.empty();
    const WriteLimits limits = cache.next(counts[row], before.written[row]).limits;
    if (!limits.multiplies || counts[row] == before.last[row]) return limits.multiplies;
    return before.writes[row] == 1 &&
           limits.run(cache.first_limits(before.last[row]).lebesgue) <= most_run;
  };
  const auto alike = [&](std::size_t a, std::size_t b) {
    const Index n = counts[b];
    return cache.tau(before.written[a], n) == cache.tau(before.written[b], n);
  };
  const auto runs = detail::write_runs(before.written, counts, multiplies, alike);
  Variable<T, B> y(Tensor<T, B>(Shape{batch, N, d}));
  T* const all = y.value().data();
  const bool carried = before.only_read && !before.only_read->empty();
  if (before.only_read && !carried) *before.only_read = Tensor<T, B>(Shape{batch, N, d});
  for (const auto& run : runs) {
    const Index rows = run.end - run.begin;
    const auto old = before.coefficients.value().slice(run.begin, run.end);
    T* const out = all + run.begin * row_size;
    if (run.old == detail::OldSignal::kept) {
      B::copy(out, old.data(), rows * row_size);
      continue;
    }
    const T* const taken = x.value().data() + (run.begin * length + length - run.length) * d;
    const detail::VectorRows<const T> given{taken, run.length, length * d};
    const detail::VectorRows<T> fitted{out, N, row_size};
    if (run.old == detail::OldSignal::none) {
      detail::multiply_rows(cache.first(run.length), true, rows, d, given, T(0), fitted);
      continue;
    }
    const auto next = cache.next(run.length, run.written);
    if (run.old == detail::OldSignal::multiplied && carried) {
      B::copy(out, std::as_const(*before.only_read).data() + run.begin * row_size, rows * row_size);
    } else if (run.old == detail::OldSignal::multiplied) {
      detail::multiply_rows(next.carry, false, next.thin_carry, false, rows, d,
                            detail::rows_of(old), T(0), fitted);
      if (before.only_read)
        B::copy(before.only_read->data() + run.begin * row_size, out, rows * row_size);
    } else {
      auto sampled = locations.empty()
                         ? resample(cache.even_functions(), old)
                         : resample(cache.basis(), old, locations.slice(run.begin, run.end));
      if (bounded) detail::clamp_samples(sampled, before.largest.data() + run.begin * d);
      detail::multiply_rows(next.next_old, true, rows, d, detail::rows_of(std::as_const(sampled)),
                            T(0), fitted);
    }
    detail::multiply_rows(next.next_new, true, next.thin_new, false, rows, d, given, T(1), fitted);
  }
  const bool any_kept = std::any_of(runs.begin(), runs.end(), [](const detail::WriteRun& run) {
    return run.old == detail::OldSignal::kept;
  });
  const Variable<T, B> old = any_kept ? before.coefficients : Variable<T, B>();
  return record(
      y,
      [cache, x = Unread(x), old = Unread(old), runs, length, d, N,
       row_size](const Tensor<T, B>& dy) {
        for (const auto& run : runs) {
          if (run.old == detail::OldSignal::kept) {
            if (!old.requires_grad()) continue;
            const T* const from = dy.data() + run.begin * row_size;
            T* const to = old.grad().data() + run.begin * row_size;
            B::for_each((run.end - run.begin) * row_size,
                        [=] INFTY_HOST_DEVICE(Index i) { to[i] += from[i]; });
            continue;
          }
          if (!x.requires_grad()) continue;
          const Index rows = run.end - run.begin;
          const detail::VectorRows<const T> of_fitted{dy.data() + run.begin * row_size, N,
                                                      row_size};
          const detail::VectorRows<T> of_given{
              x.grad().data() + (run.begin * length + length - run.length) * d, run.length,
              length * d};
          if (run.old == detail::OldSignal::none) {
            detail::multiply_rows(cache.first(run.length), false, rows, d, of_fitted, T(1),
                                  of_given);
            continue;
          }
          const auto next = cache.next(run.length, run.written);
          detail::multiply_rows(next.next_new, false, next.thin_new, true, rows, d, of_fitted, T(1),
                                of_given);
        }
      },
      Unread(x), Unread(old));
}

}  // namespace infty
