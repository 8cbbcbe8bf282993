// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <fstream>
#include <limits>

#include <sys/resource.h>
#include <unistd.h>

namespace support {

inline constexpr double gibibyte = 1024.0 * 1024 * 1024;

/// Bytes of memory that this process may come to use: the machine's, or what its control group or
/// `ulimit -v` leaves of them.
inline double memory_limit() {
  double bytes =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  double group = 0;  // the file says "max" where there is no limit
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> group) bytes = std::min(bytes, group);
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<double>(limit.rlim_cur));
  return bytes > 0 ? bytes : std::numeric_limits<double>::infinity();
}

}  // namespace support
