// SPDX-License-Identifier: MIT
#pragma once

#include <infty/eigen/backend.hpp>

namespace infty::tests {

/// A device that works through a queue, as far as the host sees it: counts the calls that would
/// wait, puts off checks, which it takes to be passed, and leaves out rows that are not in a table.
struct Queue : EigenBackend {
  static inline Index waits = 0;

  template <class T>
  static void to_host(T* to, const T* from, Index n) {
    ++waits;
    EigenBackend::to_host(to, from, n);
  }
  template <class T, class Fold, class F>
  static T reduce(Index n, T init, Fold fold, F f) {
    ++waits;
    return EigenBackend::reduce(n, init, fold, f);
  }
  template <class T>
  static bool cholesky_solve(Index n, Index m, T* a, T* b) {
    ++waits;
    return EigenBackend::cholesky_solve(n, m, a, b);
  }
  template <class Bad, class Report>
  static void verify(Index, Bad, Report) {}
  template <class T>
  static void gather_rows(Index n, Index width, const T* from, const Index* rows, Index count,
                          T* to) {
    for (Index i = 0; i < n; ++i)
      if (rows[i] >= 0 && rows[i] < count)
        copy(to + i * width, from + rows[i] * width, width);
      else
        fill(to + i * width, width, T{});
  }
  template <class T>
  static void scatter_add_rows(Index n, Index width, const T* from, const Index* rows, Index count,
                               T* to) {
    for (Index i = 0; i < n; ++i)
      if (rows[i] >= 0 && rows[i] < count)
        EigenBackend::scatter_add_rows(1, width, from + i * width, rows + i, count, to);
  }
};

}  // namespace infty::tests
