// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include <infty/core/config.hpp>
#include <infty/signal/ridge_settings.hpp>

namespace infty::detail {

/// Values by what they are made of, the most recently used in front, for several threads at once.
template <class Key, class Value>
class RecentlyUsed {
 public:
  /// The value for `key`, from `make()` if it is not there. `make` runs outside of the lock, so
  /// that nobody waits for it who asks for another; of several threads that make one value,
  /// the first to come back gives it to all. @param bytes  of a value
  template <class Make, class Bytes>
  Value get(const Key& key, const RidgeSettings& limits, Make make, Bytes bytes) {
    if (auto kept = find(key)) return *std::move(kept);
    Value made = make();
    const std::size_t size = bytes(made);
    const std::lock_guard lock(mutex_);
    if (auto kept = locked_find(key)) return *std::move(kept);
    values_.emplace_front(key, size, made);
    held_ += size;
    while (values_.size() > 1 &&
           (static_cast<Index>(values_.size()) > limits.entries || held_ > limits.bytes)) {
      held_ -= values_.back().bytes;
      values_.pop_back();
    }
    return made;
  }

  /// How many values are kept.
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }
  /// Bytes of them.
  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }

 private:
  struct Kept {
    Key key;
    std::size_t bytes;
    Value value;
  };

  std::optional<Value> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    return locked_find(key);
  }

  std::optional<Value> locked_find(const Key& key) {
    for (auto it = values_.begin(); it != values_.end(); ++it) {
      if (!(it->key == key)) continue;
      values_.splice(values_.begin(), values_, it);
      return values_.front().value;
    }
    return std::nullopt;
  }

  mutable std::mutex mutex_;
  std::list<Kept> values_;
  std::size_t held_ = 0;
};

}  // namespace infty::detail
