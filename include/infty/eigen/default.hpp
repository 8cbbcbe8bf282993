// SPDX-License-Identifier: MIT
#pragma once

// The default of every `Backend` parameter, with its primitives. nvcc does not read Eigen: what it
// compiles names its backend.
#if !defined(__CUDACC__)
#include <infty/eigen/backend.hpp>
#endif
