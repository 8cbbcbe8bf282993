// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <concepts>
#include <exception>
#include <mutex>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>

// Clang, told the same, warns of every loop that it cannot turn into vector code (-Wpass-failed).
#if defined(_OPENMP) && !defined(__clang__)
#define INFTY_INDEPENDENT_LOOP _Pragma("omp simd")
#else
#define INFTY_INDEPENDENT_LOOP
#endif

namespace infty {

namespace detail {

inline std::atomic<int>& thread_limit() {
  static std::atomic<int> limit{0};
  return limit;
}

}  // namespace detail

/// Returns the number of threads that EigenBackend uses; until set, what OpenMP would. 1 without
/// OpenMP.
inline int num_threads() {
#if defined(_OPENMP)
  const int limit = detail::thread_limit().load(std::memory_order_relaxed);
  return limit > 0 ? limit : omp_get_max_threads();
#else
  return 1;
#endif
}

/// Sets the number of threads that EigenBackend uses from now on; results do not depend on it.
/// @throws infty::ValueError if n < 1
inline void set_num_threads(int n) {
  require_at_least("set_num_threads", "n", n, 1);
  detail::thread_limit().store(n, std::memory_order_relaxed);
}

namespace detail {

/// Calls call(body, begin, end) for the pieces of [0, n), over the threads: one function for all
/// bodies, so that each of them stands in a program once.
[[gnu::noinline]] inline void for_pieces(Index n, Index grain, const void* body,
                                         void (*call)(const void*, Index, Index)) {
  if (n <= 0) return;
  const Index pieces = (n + grain - 1) / grain;
#if defined(_OPENMP)
  if (pieces > 1 && num_threads() > 1 && !omp_in_parallel()) {
    const int threads = static_cast<int>(std::min<Index>(num_threads(), pieces));
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (Index piece = 0; piece < pieces; ++piece)
      call(body, piece * grain, (std::min)(n, (piece + 1) * grain));
    return;
  }
#endif
  for (Index piece = 0; piece < pieces; ++piece)
    call(body, piece * grain, (std::min)(n, (piece + 1) * grain));
}

}  // namespace detail

/// Calls body(begin, end) for the pieces of [0, n) that are `grain` long, the last one shorter.
/// Pieces do not depend on the number of threads, so neither does any result. `body` must not
/// throw.
template <class Body>
  requires std::invocable<const Body&, Index, Index>
void parallel_for(Index n, Index grain, const Body& body) {
  detail::for_pieces(n, grain, &body, [](const void* erased, Index begin, Index end) {
    (*static_cast<const Body*>(erased))(begin, end);
  });
}

/// Calls task(i) for all i in [0, n), each of them in one thread and all that it calls too. What a
/// task throws is thrown from here, once all have ended; of several the one with the smallest i.
template <class Task>
  requires std::invocable<const Task&, Index>
void parallel_tasks(Index n, const Task& task) {
#if defined(__cpp_exceptions)
  std::exception_ptr error;
  Index failed = n;
  std::mutex mutex;
  parallel_for(n, 1, [&](Index begin, Index) {
    try {
      task(begin);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (begin < failed) {
        failed = begin;
        error = std::current_exception();
      }
    }
  });
  if (error) std::rethrow_exception(error);
#else
  parallel_for(n, 1, [&](Index begin, Index) { task(begin); });
#endif
}

}  // namespace infty
