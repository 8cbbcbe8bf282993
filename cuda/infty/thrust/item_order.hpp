// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

namespace infty::detail {

/// In which order the host runs the items of an `each`. A kernel without a race gives the same bits
/// in all of them; in the latter two, which are for tests, shared memory starts as NaN, and so does
/// what lies behind each piece of it, which nobody may write.
enum class ItemOrder { forward, reverse, shuffled };

/// The order of a system: a test specialises it for a tag of its own.
template <class System>
inline constexpr ItemOrder item_order = ItemOrder::forward;

/// Where item `i` of n stands in an order.
template <ItemOrder order, class Int>
INFTY_HOST_DEVICE inline Int ordered(Int i, Int n) {
  if constexpr (order == ItemOrder::reverse) return n - 1 - i;
  // A step without a common divisor visits every item once.
  if constexpr (order == ItemOrder::shuffled) {
    const long long step = n % 7919 == 0 ? 1 : 7919;
    return static_cast<Int>((static_cast<long long>(i) * step + n / 3) % n);
  }
  return i;
}

}  // namespace infty::detail
