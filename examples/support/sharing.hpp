// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <infty/core/config.hpp>

namespace support {

/// How ranks work together, which changes no number; the same on all of them.
struct Sharing {
  /// Seconds without a sign of life behind which a rank is given up; 0: never.
  double silence = 7;
  /// MiB of gradients that are sent at once; 0: all, when the backward pass is done.
  double bucket = 0;
  /// Whether each has a part of the optimiser's state alone (ZeRO-1).
  bool zero = false;

  infty::Index bucket_bytes() const { return static_cast<infty::Index>(bucket * (1 << 20)); }

  /// What all ranks must have the same of.
  std::string text() const { return std::to_string(bucket_bytes()) + (zero ? " zero" : ""); }
};

}  // namespace support
