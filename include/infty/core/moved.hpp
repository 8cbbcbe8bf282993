// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

namespace infty::detail {

/// A number that is 0 where it was moved from, as the containers that it counts are empty.
template <class T>
class ZeroWhenMoved {
 public:
  ZeroWhenMoved(T value = T(0)) : value_(value) {}
  ZeroWhenMoved(const ZeroWhenMoved&) = default;
  ZeroWhenMoved(ZeroWhenMoved&& from) noexcept : value_(std::exchange(from.value_, T(0))) {}
  ZeroWhenMoved& operator=(const ZeroWhenMoved&) = default;
  ZeroWhenMoved& operator=(ZeroWhenMoved&& from) noexcept {
    value_ = std::exchange(from.value_, T(0));
    return *this;
  }
  operator T&() { return value_; }
  operator const T&() const { return value_; }

 private:
  T value_;
};

}  // namespace infty::detail
