// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>
#include <infty/core/fold.hpp>

namespace infty::detail {

/// i where bad(i), -1 elsewhere.
template <class Bad>
struct PlaceOf {
  Bad bad;
  INFTY_HOST_DEVICE Index operator()(Index i) const { return bad(i) ? i : Index{-1}; }
};

/// Asserts that bad(i) is false for all i in [0, n): calls report(i), which throws, with the
/// largest i for which it is not. A backend whose host would have to wait for the answer may bring
/// `B::verify(n, bad, report)` and report at the next call that waits anyway. So what follows must
/// be safe, though not right, for bad values; and `report` must own what it needs.
template <class B, class Bad, class Report>
void verify(Index n, Bad bad, Report report) {
  if constexpr (requires { B::verify(n, bad, report); }) {
    B::verify(n, bad, report);
  } else {
    const Index wrong = B::reduce(n, Index{-1}, Larger{}, PlaceOf<Bad>{bad});
    if (wrong >= 0) report(wrong);
  }
}

}  // namespace infty::detail
