// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <infty/parallel/level_sums.hpp>

namespace infty::detail {

/// A thread that does a job with one slice after the other, in the order in which it gets them.
/// What the job throws ends its work, and is thrown by `finish`.
class Background {
 public:
  explicit Background(std::function<void(Slice)> job)
      : job_(std::move(job)), thread_([this] { run(); }) {}
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  /// Waits until what was pushed is done.
  ~Background() { close(); }

  /// Has the job done with a slice, behind all others.
  void push(Slice slice) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(slice);
    changed_.notify_one();
  }

  /// Waits until all is done; nothing may be pushed behind it. @throws what the job has thrown
  void finish() {
    close();
#if defined(__cpp_exceptions)
    if (failed_) std::rethrow_exception(failed_);
#endif
  }

 private:
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

  void run() {
#if defined(__cpp_exceptions)
    try {
      work();
    } catch (...) {
      failed_ = std::current_exception();
    }
#else
    work();
#endif
  }

  void work() {
    for (;;) {
      Slice slice;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        slice = waiting_.front();
        waiting_.pop_front();
      }
      job_(slice);
    }
  }

  std::function<void(Slice)> job_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slice> waiting_;
  bool closed_ = false;
  std::exception_ptr failed_;  // read when the thread has ended
  std::thread thread_;         // the last member: it uses the others
};

}  // namespace infty::detail
