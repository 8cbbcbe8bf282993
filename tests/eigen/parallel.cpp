// SPDX-License-Identifier: MIT
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <infty/eigen/parallel.hpp>

#include "support/catch.hpp"
#include "support/threads.hpp"

using infty::Index;
using infty::tests::with_threads;

TEST_CASE("parallel_for: the same pieces with any number of threads") {
  for (const Index n : {0, 1, 9, 10, 11, 1001}) {
    for (const int threads : {1, 2, 5, 100}) {
      // A piece is told by where it begins, so that threads write apart from one another.
      std::vector<Index> ends(static_cast<std::size_t>(n));
      with_threads(threads, [&] {
        infty::parallel_for(
            n, 10, [&](Index begin, Index end) { ends[static_cast<std::size_t>(begin)] = end; });
      });
      for (Index i = 0; i < n; ++i)
        REQUIRE(ends[static_cast<std::size_t>(i)] == (i % 10 == 0 ? std::min(n, i + 10) : 0));
    }
  }
}

#if defined(_OPENMP)
TEST_CASE("parallel_for: who has done its pieces does others'") {
  std::atomic<int> done = 0, threads = 0, when_the_first_ends = 0;
  with_threads(2, [&] {
    infty::parallel_for(20, 1, [&](Index piece, Index) {
      threads = omp_get_num_threads();
      if (piece > 0) {
        ++done;
        return;
      }
      // Behind it are nine more that its thread would have done.
      const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (threads > 1 && done < 19 && std::chrono::steady_clock::now() < patience)
        std::this_thread::yield();
      when_the_first_ends = done.load();
    });
  });
  CHECK(threads == 2);
  CHECK(when_the_first_ends == 19);
}
#endif

TEST_CASE("SharedPieces: a thread that is alone runs all of them, whichever it is") {
  for (const int threads : {1, 4, 64, 1000})
    for (const int thread : {0, 2, threads - 1}) {
      std::vector<int> hits(70);
      infty::detail::SharedPieces(70, threads).run_from(thread, [&](Index piece) {
        ++hits[static_cast<std::size_t>(piece)];
      });
      CHECK(hits == std::vector<int>(70, 1));
    }
}

TEST_CASE("parallel_for: one inside another runs through") {
  std::vector<int> hits(600);
  with_threads(2, [&] {
    infty::parallel_for(30, 1, [&](Index row, Index) {
      infty::parallel_for(
          20, 1, [&](Index column, Index) { ++hits[static_cast<std::size_t>(row * 20 + column)]; });
    });
  });
  CHECK(hits == std::vector<int>(600, 1));
}

TEST_CASE("parallel_tasks: every task once, and the first error of all") {
  for (const int threads : {1, 2, 5}) {
    with_threads(threads, [] {
      std::vector<int> hits(40);
      infty::parallel_tasks(40, [&](Index i) { ++hits[static_cast<std::size_t>(i)]; });
      CHECK(hits == std::vector<int>(40, 1));
      const auto failing = [&](Index i) {
        ++hits[static_cast<std::size_t>(i)];
        infty::require(i != 7 && i != 30, "task", "task ", i);
      };
      CHECK_THROWS_WITH(infty::parallel_tasks(40, failing), "[task] task 7");
      CHECK(hits == std::vector<int>(40, 2));
      infty::parallel_tasks(0, failing);
    });
  }
}

TEST_CASE("set_num_threads: what was set is what is used") {
  const int before = infty::num_threads();
  CHECK(before >= 1);
#if defined(_OPENMP)
  CHECK(with_threads(3, [] { return infty::num_threads(); }) == 3);
#endif
  CHECK(infty::num_threads() == before);
  CHECK_THROWS_WITH(infty::set_num_threads(0), "[set_num_threads] n is 0: it must be at least 1");
}
