// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/kernel/chosen.hpp>

namespace infty {

/// The elements of one gradient, in the backend's memory.
template <class T>
struct GradientItem {
  T* g;        ///< [size]
  Index size;  ///< elements, 0 where there is no gradient
};

/// The composition that defines what is measured of all gradients and done to them at once,
/// gradient by gradient. It runs on every backend and is the oracle of the fused kernels that a
/// backend may bring.
template <class Backend>
struct ComposedGradients {
  template <class Own = Backend>
  using Kernel = typename Own::FusedGradients;

  /// Writes the sum of squares of each of `count` gradients to `to`, in double whatever the scalar;
  /// what is not finite if an element is not.
  template <class T>
  static void squares(const GradientItem<T>* items, Index count, double* to) {
    Backend::fill(to, count, 0.0);
    for (Index i = 0; i < count; ++i) {
      if (items[i].size == 0) continue;
      const T* const from = items[i].g;
      Backend::reduce_into(
          items[i].size, 0.0, detail::Plus{},
          [=] INFTY_HOST_DEVICE(Index k) {
            const auto value = static_cast<double>(from[k]);
            return value * value;
          },
          to + i);
    }
  }

  /// Multiplies all elements of `count` gradients by `factor`.
  template <class T>
  static void scale(const GradientItem<T>* items, Index count, T factor) {
    for (Index i = 0; i < count; ++i) {
      T* const g = items[i].g;
      Backend::for_each(items[i].size, [=] INFTY_HOST_DEVICE(Index k) { g[k] *= factor; });
    }
  }
};

}  // namespace infty
