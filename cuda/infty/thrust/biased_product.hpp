// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <infty/autograd/linear.hpp>
#include <infty/thrust/tensor_cores.hpp>

namespace infty {

template <class System>
struct ThrustBackend;

namespace detail {

template <class System>
struct ThrustSystem;

/// Products of layers whose biases a library adds before it writes them, where it may and can.
template <class System>
struct LibraryBiasedProduct {
  /// As `ComposedBiasedProduct::multiply`.
  template <class T>
  static void multiply(Index rows, Index out, Index in, const T* x, const T* w, const T* b, T* y) {
    if constexpr (std::is_same_v<T, float>)
      if (gpu::bias_epilogue() && rows > 0 && out > 0 && in > 0 &&
          ThrustSystem<System>::biased_product(rows, out, in, x, w, b, y))
        return;
    ComposedBiasedProduct<ThrustBackend<System>>::multiply(rows, out, in, x, w, b, y);
  }
};

}  // namespace detail

}  // namespace infty
