// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>

#include "interrupt.hpp"
#include "progress_line.hpp"

namespace support {

using infty::Index;

/// Does `runs` runs, so many at once, each in one thread, with a progress line of `total` in all:
/// run(i, done) makes run i and calls done(more) as it goes; keep(i, made) takes what it made, one
/// at a time. Throws what the first of them throws, when the others that were going on are done;
/// what is interrupted ends all, and is nothing thrown.
template <class Run, class Keep>
void side_by_side(const char* name, Index runs, Index at_once, Index total, const char* unit,
                  Run&& run, Keep&& keep) {
  ProgressLine line(name, total, 0, unit);
  std::atomic<Index> next = 0, progress = 0;
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (Index i; (i = next++) < runs;) {
        auto made = run(i, [&](Index more) {
          const Index all = progress += more;
          const std::lock_guard lock(mutex);
          if (all == progress) line.update(all);
        });
        const std::lock_guard lock(mutex);
        keep(i, std::move(made));
      }
    } catch (const Interrupted&) {
      next = runs;
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next = runs;
    }
  };
  std::vector<std::thread> threads;
  for (Index i = 0; i < std::min(at_once, runs); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace support
