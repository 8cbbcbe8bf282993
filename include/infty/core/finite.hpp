// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/fold.hpp>
#include <infty/core/tensor.hpp>

namespace infty::detail {

/// Whether no element is NaN or infinite.
template <class T, class B>
bool all_finite(const Tensor<T, B>& x) {
  const T* const from = x.data();
  // x - x is 0 for finite x and NaN otherwise.
  return B::reduce(x.size(), 0.0, Plus{}, [=] INFTY_HOST_DEVICE(Index i) {
           return static_cast<double>(from[i] - from[i]);
         }) == 0;
}

}  // namespace infty::detail
