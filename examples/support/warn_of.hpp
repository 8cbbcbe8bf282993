// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <string>

#include <infty/memory/stability.hpp>

namespace support {

/// Prints what a long-term memory cannot keep of writes of `length` vectors, if anything; of large
/// ones, for which that takes long, nothing.
inline void warn_of(const char* program, const infty::LongTermConfig& memory, infty::Index length) {
  if (memory.basis > 1024 || memory.samples > 1024 || length > 1024) return;
  for (const std::string& fault : infty::warnings(memory, length))
    std::fprintf(stderr, "%s: warning: %s (docs/stability.md)\n", program, fault.c_str());
}

}  // namespace support
