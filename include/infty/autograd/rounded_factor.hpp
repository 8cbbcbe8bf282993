// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>

#include <infty/core/tensor.hpp>

namespace infty::detail {

/// A value as products have it that round their factors, in pairs, and of which elements it was
/// made. It does not keep these alive.
template <class T, class B>
struct RoundedFactor {
  std::weak_ptr<const void> memory;
  const T* data;
  Shape shape;
  Index version;
  Tensor<T, B> pairs;

  /// That of a value, as it is.
  RoundedFactor(const Tensor<T, B>& value, Tensor<T, B> its_pairs)
      : memory(value.memory()),
        data(value.data()),
        shape(value.shape()),
        version(value.version()),
        pairs(std::move(its_pairs)) {}

  /// Whether `now` are these elements, and they have not been written since.
  bool is_of(const Tensor<T, B>& now) const {
    const std::weak_ptr<const void> other = now.memory();
    return !memory.owner_before(other) && !other.owner_before(memory) && data == now.data() &&
           shape == now.shape() && version == now.version();
  }
};

}  // namespace infty::detail
