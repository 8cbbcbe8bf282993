// SPDX-License-Identifier: MIT
#pragma once

#include <infty/thrust/system.hpp>

namespace infty::tests {

/// The system of a `ThrustBackend`, to launch a kernel on.
template <class Backend>
struct SystemOf;
template <class System>
struct SystemOf<ThrustBackend<System>> {
  using type = System;
};
template <class Backend>
using system_of_t = typename SystemOf<Backend>::type;

}  // namespace infty::tests
