// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace infty::detail {

/// Does something once for each GPU, whichever thread comes first.
class OncePerDevice {
 public:
  /// Calls f() unless a call for this GPU has returned already; who comes meanwhile waits for it.
  /// What throws counts as not done. Behind GPU 63 f() is called each time.
  template <class F>
  void call(int device, const F& f) {
    const std::uint64_t bit = device < 64 ? std::uint64_t{1} << device : 0;
    if (done_.load(std::memory_order_acquire) & bit) return;
    const std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed) & bit) return;
    f();
    done_.fetch_or(bit, std::memory_order_release);
  }

 private:
  std::atomic<std::uint64_t> done_ = 0;
  std::mutex mutex_;
};

}  // namespace infty::detail
