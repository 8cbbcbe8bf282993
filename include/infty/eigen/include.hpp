// SPDX-License-Identifier: MIT
#pragma once

// GCC 12 warns of its own AVX-512 intrinsics wherever they are inlined (its bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <Eigen/Cholesky>
#include <Eigen/Core>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)
#error "infty needs Eigen 3.4 or later"
#endif
