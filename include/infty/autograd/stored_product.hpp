// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/backend.hpp>
#include <infty/core/bfloat16.hpp>
#include <infty/core/tensor.hpp>

namespace infty {

/// The composition that defines products with weights stored in bfloat16. It runs on every backend
/// and is the oracle of the fused kernel that a backend may bring, for such sizes as it takes.
template <class B>
struct ComposedStoredProduct {
  template <class Own = B>
  using Kernel = typename Own::FusedStoredProduct;

  /// y (m, n) = x (m, k) W (n, k)ᵀ + beta y, whose rows are `leading` apart, as of weights in full
  /// that hold these numbers: some of their rows are, at a time.
  template <class T>
  static void multiply(Index m, Index n, Index k, const T* x, const BFloat16* w, T beta, T* y,
                       Index leading, bool roundable) {
    constexpr Index most = Index{1} << 22;
    const Index columns = std::clamp<Index>(n, 1, std::max<Index>(1, most / std::max<Index>(k, 1)));
    Tensor<T, B> full(Shape{columns, k});
    for (Index first = 0; first < n; first += columns) {
      const Index count = (std::min)(columns, n - first);
      T* const to = full.data();
      const BFloat16* const from = w + first * k;
      B::for_each(count * k, [=] INFTY_HOST_DEVICE(Index i) { to[i] = static_cast<T>(from[i]); });
      B::matmul({.m = m,
                 .n = count,
                 .k = k,
                 .a = {.leading = k},
                 .b = {.leading = k, .transposed = true},
                 .c = {.leading = leading},
                 .roundable = roundable},
                T(1), x, to, beta, y + first);
    }
  }
};

}  // namespace infty
