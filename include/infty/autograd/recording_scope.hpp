// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include <infty/autograd/fwd.hpp>

namespace infty::detail {

/// As long as it lives, a tape, or with null none, records on the thread that made it; unless a
/// scope does that was made later. Scopes may end in any order and on any thread.
class RecordingScope {
 public:
  explicit RecordingScope(Tape* tape) : thread_(here()), tape_(tape) {
    const std::lock_guard lock(thread_->mutex);
    outer_ = thread_->innermost;
    thread_->innermost = this;
    thread_->update();
  }
  ~RecordingScope() {
    const std::lock_guard lock(thread_->mutex);
    RecordingScope** at = &thread_->innermost;
    while (*at != this) at = &(*at)->outer_;
    *at = outer_;
    thread_->update();
  }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

  /// Returns the tape that records on this thread, or null.
  static Tape* active() { return here()->active.load(std::memory_order_relaxed); }

 private:
  /// The scopes of a thread, which may outlive it.
  struct Thread {
    std::mutex mutex;
    RecordingScope* innermost = nullptr;
    std::atomic<Tape*> active{nullptr};

    void update() {
      active.store(innermost ? innermost->tape_ : nullptr, std::memory_order_relaxed);
    }
  };

  static const std::shared_ptr<Thread>& here() {
    static thread_local const std::shared_ptr<Thread> thread = std::make_shared<Thread>();
    return thread;
  }

  const std::shared_ptr<Thread> thread_;
  Tape* const tape_;
  RecordingScope* outer_ = nullptr;
};

}  // namespace infty::detail
