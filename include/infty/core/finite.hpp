// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/fold.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>

namespace infty::detail {

/// The word of element i of which `math::detail::spill` tells.
template <class T>
struct SpillOf {
  const T* from;
  INFTY_HOST_DEVICE auto operator()(Index i) const {
    return math::detail::spill(math::detail::size_bits(from[i]));
  }
};

/// Returns whether no element is NaN or infinite.
template <class T, class B>
bool all_finite(const Tensor<T, B>& x) {
  using Word = typename math::detail::FloatBits<T>::Unsigned;
  return !math::detail::spilt(B::reduce(x.size(), Word(0), AnyBits{}, SpillOf<T>{x.data()}));
}

/// Whether element i is NaN or infinite.
template <class T>
struct NotFinite {
  const T* from;
  INFTY_HOST_DEVICE bool operator()(Index i) const { return !math::is_finite_at(from + i); }
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
