// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/version.hpp>  // says that C++20 is needed

/// Marks a function that a device compiler builds for both sides; empty under a host compiler.
#if defined(__CUDACC__)
#define INFTY_HOST_DEVICE __host__ __device__
#else
#define INFTY_HOST_DEVICE
#endif

namespace infty {

/// Sizes, positions and dimensions. Signed, as in Eigen, so that differences are safe.
using Index = std::ptrdiff_t;

}  // namespace infty
