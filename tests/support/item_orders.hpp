// SPDX-License-Identifier: MIT
#pragma once

#include <infty/thrust/host.hpp>
#include <infty/thrust/tile.hpp>

namespace infty::tests {

// One host thread that runs the items of a tile program backwards, or here and there: a program
// whose items race for an element shows it by other bits.
struct Backwards;
struct Shuffled;

}  // namespace infty::tests

namespace infty::detail {

template <>
inline constexpr ItemOrder item_order<tests::Backwards> = ItemOrder::reverse;
template <>
inline constexpr ItemOrder item_order<tests::Shuffled> = ItemOrder::shuffled;
template <>
struct ThrustSystem<tests::Backwards> : ThrustSystem<Cpp> {};
template <>
struct ThrustSystem<tests::Shuffled> : ThrustSystem<Cpp> {};

}  // namespace infty::detail

namespace infty::tests {

/// Whether `run.operator()<Backend>()` returns the same whatever the order of a block's items.
template <class Run>
bool same_in_all_orders(const Run& run) {
  const auto forward = run.template operator()<ThrustBackend<Cpp>>();
  return forward == run.template operator()<ThrustBackend<Backwards>>() &&
         forward == run.template operator()<ThrustBackend<Shuffled>>();
}

}  // namespace infty::tests
