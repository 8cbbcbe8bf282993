// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>
#include <infty/memory/state.hpp>
#include <infty/signal/ridge_cache.hpp>

namespace infty {

namespace detail {

/// Rows [begin, end) that take in equally many vectors, all of them fresh or none.
struct WriteRun {
  Index begin, end, length;
  bool fresh;
};

/// Cuts the rows into runs that one matrix serves. @param written  vectors before, 0 for fresh
inline std::vector<WriteRun, PoolAllocator<WriteRun>> write_runs(const RowCounts& written,
                                                                 const RowCounts& counts) {
  std::vector<WriteRun, PoolAllocator<WriteRun>> runs;
  for (std::size_t row = 0; row < counts.size(); ++row) {
    const Index at = static_cast<Index>(row);
    const bool fresh = written[row] == 0;
    if (!runs.empty() && runs.back().length == counts[row] && runs.back().fresh == fresh)
      runs.back().end = at + 1;
    else
      runs.push_back({at, at + 1, counts[row], fresh});
  }
  return runs;
}

}  // namespace detail

/// New coefficients from old ones and new vectors   [Martins et al. 2022, Eq. 5, 13-15, 23]. A
/// fresh row is fitted to its vectors, B = Gᵀ X; any other is contracted, sampled and fitted
/// together with them, B' = A B + Gᵀ X, or, sampled at given locations t, B' = Gₚᵀ psi(t) B + Gᵀ X.
/// No gradient flows to the old coefficients: the paper stops it.
/// @param old        [B, N, d], of any value in fresh rows
/// @param written    [B], vectors that each row has taken in before; 0 is fresh
/// @param x          [B, L, d], aligned to the right
/// @param counts     [B], how many vectors of x a row takes in; a row of 0 keeps its coefficients
/// @param locations  [B, samples] in [0, 1], or empty for evenly spaced ones
/// @return           [B, N, d]
template <class T, class B, class Psi>
Variable<T, B> write_coefficients(const RidgeCache<T, B, Psi>& cache, const Tensor<T, B>& old,
                                  const RowCounts& written, const Variable<T, B>& x,
                                  const RowCounts& counts, const Tensor<T, B>& locations) {
  const Index batch = x.dim(0), length = x.dim(1), d = x.dim(2), N = cache.basis().size();
  const Index row_size = N * d, samples = cache.settings().samples;
  const auto runs = detail::write_runs(written, counts);
  Variable<T, B> y(Tensor<T, B>(Shape{batch, N, d}));
  for (const auto& run : runs) {
    const Index rows = run.end - run.begin;
    const T* const before = old.data() + run.begin * row_size;
    T* const out = y.value().data() + run.begin * row_size;
    if (run.length == 0) {
      B::copy(out, before, rows * row_size);
      continue;
    }
    const T* const taken = x.value().data() + (run.begin * length + length - run.length) * d;
    const auto add_new = [&](const Tensor<T, B>& G, T beta) {
      B::matmul({.m = N,
                 .n = d,
                 .k = run.length,
                 .a = {.leading = N, .transposed = true},
                 .b = {.leading = d, .outer = length * d},
                 .c = {.leading = d, .outer = row_size},
                 .outer = rows},
                T(1), G.data(), taken, beta, out);
    };
    if (run.fresh) {
      add_new(cache.first(run.length), T(0));
      continue;
    }
    const auto next = cache.next(run.length);
    if (locations.empty()) {
      B::matmul({.m = N,
                 .n = d,
                 .k = N,
                 .a = {.leading = N},
                 .b = {.leading = d, .outer = row_size},
                 .c = {.leading = d, .outer = row_size},
                 .outer = rows},
                T(1), next.carry.data(), before, T(0), out);
    } else {
      const auto sampled = resample(cache.basis(), old.slice(run.begin, run.end),
                                    locations.slice(run.begin, run.end));  // [rows, samples, d]
      B::matmul({.m = N,
                 .n = d,
                 .k = samples,
                 .a = {.leading = N, .transposed = true},
                 .b = {.leading = d, .outer = samples * d},
                 .c = {.leading = d, .outer = row_size},
                 .outer = rows},
                T(1), next.next_old.data(), sampled.data(), T(0), out);
    }
    add_new(next.next_new, T(1));
  }
  return record(
      y,
      [cache, x, runs, length, d, N, row_size](const Tensor<T, B>& dy) {
        for (const auto& run : runs) {
          if (run.length == 0) continue;
          const Tensor<T, B> G =
              run.fresh ? cache.first(run.length) : cache.next(run.length).next_new;
          B::matmul({.m = run.length,
                     .n = d,
                     .k = N,
                     .a = {.leading = N},
                     .b = {.leading = d, .outer = row_size},
                     .c = {.leading = d, .outer = length * d},
                     .outer = run.end - run.begin},
                    T(1), G.data(), dy.data() + run.begin * row_size, T(1),
                    x.grad().data() + (run.begin * length + length - run.length) * d);
        }
      },
      Unread(x));
}

}  // namespace infty
