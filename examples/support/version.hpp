// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <infty/eigen/version.hpp>

namespace support {

/// What --version prints: infty's version and Eigen's, the build, and the compiler, for a report of
/// a fault or of a speed.
inline std::string version_text(const std::string& program) {
#if defined(INFTY_BUILD)
  const std::string build = INFTY_BUILD " build";
#else
  const std::string build = "build of no name";
#endif
#if defined(_OPENMP)
  const std::string openmp = "OpenMP";
#else
  const std::string openmp = "no OpenMP";
#endif
#if defined(__clang__)
  const std::string compiler = __VERSION__;  // with its name
#else
  const std::string compiler = "GCC " __VERSION__;
#endif
  return program + ": infty " + std::string(infty::version) + ", Eigen " +
         std::string(infty::eigen_version) + "; " + build + ", " + openmp + ", " +
         Eigen::SimdInstructionSetsInUse() + "; " + compiler;
}

}  // namespace support
