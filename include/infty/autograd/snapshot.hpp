// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/variable.hpp>

namespace infty::detail {

/// Which variable something was computed from, and its version then.
template <class T, class B>
class Snapshot {
 public:
  Snapshot() = default;
  explicit Snapshot(const Variable<T, B>& variable)
      : variable_(variable), version_(variable.version()) {}

  /// Whether `variable` is the same and has not changed since.
  bool holds(const Variable<T, B>& variable) const {
    return same(variable_, variable) && version_ == variable.version();
  }

 private:
  Variable<T, B> variable_;
  Index version_ = -1;
};

}  // namespace infty::detail
