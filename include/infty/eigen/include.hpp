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
