// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

namespace support {

/// A number with so many places behind its point; from a million on six digits and the exponent, so
/// that none is too long for a table.
inline std::string decimal(double value, int places) {
  char text[32];
  if (std::abs(value) < 1e6)
    std::snprintf(text, sizeof text, "%.*f", places, value);
  else
    std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace support
