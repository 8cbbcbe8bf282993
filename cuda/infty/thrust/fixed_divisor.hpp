// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <infty/core/config.hpp>

namespace infty::detail {

/// A divisor n >= 1 that stays the same. A GPU has no instruction that divides integers; by this
/// the quotient is one multiplication, of x >= 0 with (x + 1) n <= 2^32.
class FixedDivisor {
 public:
  /// Divides by 1.
  FixedDivisor() = default;
  /// Divides by n >= 1.
  INFTY_HOST_DEVICE explicit constexpr FixedDivisor(int n)
      : divisor_(n), factor_(0xffffffffu / static_cast<unsigned>(n)) {}

  /// Returns n.
  INFTY_HOST_DEVICE constexpr int divisor() const { return divisor_; }
  /// Computes x / n. With f = (2^32 - 1 - rest) / n the number (x + 1) f / 2^32 is less than
  /// (x + 1) / n, by (x + 1) (1 + rest) / (n 2^32) <= 1 / n: its whole part is that of x / n.
  INFTY_HOST_DEVICE constexpr int quotient(int x) const {
    const std::uint64_t product =
        static_cast<std::uint64_t>(static_cast<unsigned>(x)) * factor_ + factor_;
    return static_cast<int>(product >> 32);
  }

 private:
  int divisor_ = 1;
  unsigned factor_ = 0xffffffffu;
};

}  // namespace infty::detail
