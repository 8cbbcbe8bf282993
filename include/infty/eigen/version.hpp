// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include <infty/eigen/include.hpp>
#include <infty/version.hpp>

namespace infty {

/// The version of Eigen that this is compiled with, "major.minor.patch". From 5.0 on Eigen keeps
/// the three in other macros than before.
#if defined(EIGEN_PATCH_VERSION)
inline constexpr std::string_view eigen_version =
    INFTY_VERSION_JOIN(EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION, EIGEN_PATCH_VERSION);
#else
inline constexpr std::string_view eigen_version =
    INFTY_VERSION_JOIN(EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
#endif

}  // namespace infty
