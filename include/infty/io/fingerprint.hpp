// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace infty::detail {

/// 64 bits that tell contents apart (FNV-1a, a value at a time). Each step is a bijection of the
/// bits so far, so one value that is another is never missed; no protection against malice.
class Fingerprint {
 public:
  static constexpr std::uint64_t fresh = 0xCBF29CE484222325U;  ///< of nothing

  /// Goes on where another one has stopped.
  explicit Fingerprint(std::uint64_t bits = fresh) : bits_(bits) {}

  /// Adds a value.
  void add(std::uint64_t value) { bits_ = (bits_ ^ value) * 0x100000001B3U; }

  /// Adds the bytes of a text, and that it ends there.
  void add_text(std::string_view text) {
    for (const char c : text) add(static_cast<unsigned char>(c));
    add(256);
  }

  /// What the values so far come to.
  std::uint64_t bits() const { return bits_; }

 private:
  std::uint64_t bits_;
};

/// A fingerprint as it is shown: sixteen hexadecimal digits.
inline std::string as_hex(std::uint64_t fingerprint) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(fingerprint));
  return text;
}

}  // namespace infty::detail
