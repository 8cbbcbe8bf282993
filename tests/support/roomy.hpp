// SPDX-License-Identifier: MIT
#pragma once

#include <infty/thrust/host.hpp>
#include <infty/thrust/tile.hpp>

namespace infty::tests {

// One host thread that gives a block as much shared memory as an H100, where tiles are larger.
struct Roomy;

}  // namespace infty::tests

namespace infty::detail {

template <>
inline constexpr std::size_t shared_on_host<tests::Roomy> = 227 * 1024 - 512;
template <>
struct ThrustSystem<tests::Roomy> : ThrustSystem<Cpp> {};

}  // namespace infty::detail
