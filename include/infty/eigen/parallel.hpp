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

/// The pieces [0, n), shared out to threads. Each begins with neighbours, the same ones in every
/// loop of as many: what one loop wrote the next one finds in the core's own cache. Who has done
/// them helps others. (A counter that all took each piece from would go from core to core for it.)
class SharedPieces {
 public:
  SharedPieces(Index n, int threads) : spans_((std::min)(threads, most_spans)) {
    for (int s = 0; s < spans_; ++s) {
      span_[s].next.store(n * s / spans_, std::memory_order_relaxed);
      span_[s].end = n * (s + 1) / spans_;
    }
  }

  /// Calls run(piece) in a thread for as many as are left to it, and then to others.
  template <class Run>
  void run_from(int thread, const Run& run) {
    for (int s = 0; s < spans_; ++s) {
      Span& span = span_[(thread + s) % spans_];
      while (span.next.load(std::memory_order_relaxed) < span.end) {
        const Index piece = span.next.fetch_add(1, std::memory_order_relaxed);
        if (piece < span.end) run(piece);
      }
    }
  }

 private:
  static constexpr int most_spans = 64;  ///< 4 KiB; more threads share them
  struct alignas(64) Span {              // a line of the cache
    std::atomic<Index> next;
    Index end;
  };

  int spans_;
  Span span_[most_spans];
};

/// Calls call(body, begin, end) for the pieces of [0, n), over the threads: one function for all
/// bodies, so that each of them stands in a program once.
[[gnu::noinline]] inline void for_pieces(Index n, Index grain, const void* body,
                                         void (*call)(const void*, Index, Index)) {
  if (n <= 0) return;
  const Index pieces = (n + grain - 1) / grain;
  const auto run = [=](Index piece) {
    call(body, piece * grain, (std::min)(n, (piece + 1) * grain));
  };
#if defined(_OPENMP)
  if (pieces > 1 && num_threads() > 1 && !omp_in_parallel()) {
    const int threads = static_cast<int>(std::min<Index>(num_threads(), pieces));
    SharedPieces shared(pieces, threads);
#pragma omp parallel num_threads(threads)
    shared.run_from(omp_get_thread_num(), run);
    return;
  }
#endif
  for (Index piece = 0; piece < pieces; ++piece) run(piece);
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
