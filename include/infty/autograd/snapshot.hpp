// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/fwd.hpp>
#include <infty/core/bfloat16.hpp>
#include <infty/core/tensor.hpp>

namespace infty::detail {

/// Which elements something was computed from, and their version then. It keeps them alive, so that
/// no others can take their place in memory.
template <class T, class B>
class Snapshot {
 public:
  Snapshot() = default;
  explicit Snapshot(const Tensor<T, B>& value) : value_(value), version_(value.version()) {}
  explicit Snapshot(const Variable<T, B>& variable) {
    if (const auto* const stored = variable.stored_in_bfloat16())
      stored_ = *stored;
    else
      *this = Snapshot(variable.value());
  }

  /// The elements, as they are now; none of a variable that was stored in bfloat16.
  const Tensor<T, B>& value() const { return value_; }
  /// Their extents.
  const Shape& shape() const { return stored_.empty() ? value_.shape() : stored_.shape(); }

  /// Whether `now` are these elements, and they have not been written since.
  bool holds(const Tensor<T, B>& now) const {
    return same(value_, now) && version_ == now.version();
  }
  bool holds(const Variable<T, B>& now) const {
    const auto* const stored = now.stored_in_bfloat16();
    return stored ? same(stored_, *stored) : holds(now.value());
  }

 private:
  Tensor<T, B> value_;
  Tensor<BFloat16, B> stored_;  // which nobody writes
  Index version_ = -1;          // no tensor's
};

}  // namespace infty::detail
