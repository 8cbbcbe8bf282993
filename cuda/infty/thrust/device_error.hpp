// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <infty/core/error.hpp>

namespace infty {

/// A GPU, its driver or one of its libraries refused.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// A GPU has too little memory.
class DeviceMemoryError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

namespace gpu {

inline constexpr int least_major = 8;  ///< of the compute capability that kernels need, 8.0
inline constexpr int least_minor = 0;  ///< the same behind the point

namespace detail {

/// Why a GPU of this name and compute capability cannot run infty's kernels, in one line; empty if
/// it can.
inline std::string capability_refusal(const std::string& name, int major, int minor) {
  if (major > least_major || (major == least_major && minor >= least_minor)) return "";
  return name + " has compute capability " + std::to_string(major) + '.' + std::to_string(minor) +
         ": the least that infty is compiled for is " + std::to_string(least_major) + '.' +
         std::to_string(least_minor);
}

}  // namespace detail

}  // namespace gpu

}  // namespace infty
