// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/fwd.hpp>
#include <infty/core/tensor.hpp>

namespace infty::detail {

/// Which elements something was computed from, and their version then. It keeps them alive, so that
/// no others can take their place in memory.
template <class T, class B>
class Snapshot {
 public:
  Snapshot() = default;
  explicit Snapshot(const Tensor<T, B>& value) : value_(value), version_(value.version()) {}
  explicit Snapshot(const Variable<T, B>& variable) : Snapshot(variable.value()) {}

  /// The elements, as they are now.
  const Tensor<T, B>& value() const { return value_; }

  /// Whether `now` are these elements, and they have not been written since.
  bool holds(const Tensor<T, B>& now) const {
    return same(value_, now) && version_ == now.version();
  }
  bool holds(const Variable<T, B>& now) const { return holds(now.value()); }

 private:
  Tensor<T, B> value_;
  Index version_ = -1;  // no tensor's
};

}  // namespace infty::detail
