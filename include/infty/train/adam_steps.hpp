// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/core/backend.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/kernel/adam.hpp>

namespace infty {

/// The composition that defines a step of Adam, parameter by parameter. It runs on every backend
/// and is the oracle of the fused kernel that a backend may bring.
template <class Backend>
struct ComposedAdam {
  template <class Own = Backend>
  using Kernel = typename Own::FusedAdam;

  /// Updates `count` parameters, listed in host memory.
  template <class T>
  static void step(const AdamFactors<T>& factors, const AdamItem<T>* items, Index count) {
    for (Index k = 0; k < count; ++k) {
      const AdamItem<T> item = items[k];
      Backend::for_each(item.size, [=] INFTY_HOST_DEVICE(Index i) { factors(item, i); });
    }
  }
};

/// A step of Adam of a few rows of a table, each as if it were a parameter of its own: its own
/// count of steps, which advances, makes the factors of its bias correction.
template <class Backend>
struct AdamRowSteps {
  /// Updates the rows that `table` lists.
  template <class T>
  static void step(const AdamFactors<T>& factors, const AdamRows<T>& table) {
    constexpr Index powers = 64;  // what two of them cost, in elements of a loop
    Backend::for_each_row(table.n, powers, [=] INFTY_HOST_DEVICE(Index u) {
      const Index row = table.row(u);
      const T before = table.steps[row] >= T(0) ? table.steps[row] : T(0);  // of a bad file
      table.steps[row] = before + T(1);
      const auto t = static_cast<double>(table.steps[row]);
      table.scratch[2 * u] = static_cast<T>(table.learning_rate / (1 - std::pow(table.beta1, t)));
      table.scratch[2 * u + 1] = static_cast<T>(1 / std::sqrt(1 - std::pow(table.beta2, t)));
    });
    detail::for_each_element<Backend>(
        table.n, table.width,
        [=] INFTY_HOST_DEVICE(Index u, Index j) { factors(table.item(u), j); });
  }
};

}  // namespace infty
