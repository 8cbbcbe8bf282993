// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include <infty/core/bfloat16.hpp>
#include <infty/core/tensor.hpp>

namespace infty::detail {

/// A value in bfloat16, two bytes a number; and beside it in full, once somebody has asked.
template <class T, class B>
class StoredValue {
 public:
  explicit StoredValue(Tensor<BFloat16, B> rounded) : rounded_(std::move(rounded)) {}

  const Tensor<BFloat16, B>& rounded() const { return rounded_; }

  /// The same numbers in full, made by the first who asks, of however many threads.
  const Tensor<T, B>& full() const {
    if (!made_.load(std::memory_order_acquire)) {
      const std::lock_guard lock(mutex_);
      if (!made_.load(std::memory_order_relaxed)) {
        full_ = rounded_.template cast<T>();
        made_.store(true, std::memory_order_release);
      }
    }
    return full_;
  }

 private:
  const Tensor<BFloat16, B> rounded_;
  mutable std::atomic<bool> made_{false};
  mutable std::mutex mutex_;
  mutable Tensor<T, B> full_;
};

}  // namespace infty::detail
