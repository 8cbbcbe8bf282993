// SPDX-License-Identifier: MIT
#pragma once

// In front of all that would say it in other words. GCC before 11 has its own number for C++20.
#if __cplusplus <= 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG <= 201703L)
#error "infty needs C++20: -std=c++20"
#endif

#include <string_view>

// The version of the library. The build system reads these three lines; all else is made of them.
/// Rises where programs have to be changed; 0 as long as any version may want that.
#define INFTY_VERSION_MAJOR 0
/// Rises with what is new.
#define INFTY_VERSION_MINOR 2
/// Rises with what is put right and nothing else.
#define INFTY_VERSION_PATCH 0

/// One number that rises: `#if INFTY_VERSION_NUMBER >= 200` is "from 0.2.0 on".
#define INFTY_VERSION_NUMBER \
  (INFTY_VERSION_MAJOR * 10000 + INFTY_VERSION_MINOR * 100 + INFTY_VERSION_PATCH)

#define INFTY_VERSION_JOIN_(major, minor, patch) #major "." #minor "." #patch
#define INFTY_VERSION_JOIN(major, minor, patch) INFTY_VERSION_JOIN_(major, minor, patch)

/// "major.minor.patch".
#define INFTY_VERSION \
  INFTY_VERSION_JOIN(INFTY_VERSION_MAJOR, INFTY_VERSION_MINOR, INFTY_VERSION_PATCH)

namespace infty {

/// The version of the library, "major.minor.patch".
inline constexpr std::string_view version = INFTY_VERSION;

}  // namespace infty
