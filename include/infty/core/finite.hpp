// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/fold.hpp>
#include <infty/core/tensor.hpp>

namespace infty::detail {

/// Returns whether no element is NaN or infinite.
template <class T, class B>
bool all_finite(const Tensor<T, B>& x) {
  const T* const from = x.data();
  // x - x is 0 for finite x and NaN otherwise.
  return B::reduce(x.size(), T(0), Plus{},
                   [=] INFTY_HOST_DEVICE(Index i) { return from[i] - from[i]; }) == T(0);
}

/// Whether element i is NaN or infinite.
template <class T>
struct NotFinite {
  const T* from;
  INFTY_HOST_DEVICE bool operator()(Index i) const { return !(from[i] - from[i] == T(0)); }
};

/// Asserts that all elements are finite, else calls report(), which throws. A backend with a
/// `verify` of its own may report at its next call that waits (core/verify.hpp).
template <class T, class B, class Report>
void require_finite(const Tensor<T, B>& x, Report report) {
  if constexpr (requires(bool (*bad)(Index), void (*say)(Index)) { B::verify(Index{0}, bad, say); })
    B::verify(x.size(), NotFinite<T>{x.data()}, [report, x](Index) { report(); });
  else if (!all_finite(x))
    report();
}

}  // namespace infty::detail
