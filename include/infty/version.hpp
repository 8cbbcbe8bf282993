// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace infty {

/// The version of the library, "major.minor.patch"; the build system reads it from this line.
inline constexpr std::string_view version = "0.1.0";

}  // namespace infty
