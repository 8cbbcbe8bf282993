// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <infty/core/utf8.hpp>
#include <infty/data/unicode.hpp>

namespace infty::detail {

/// What stands for byte b where it is no UTF-8: no_code_point + b, above all code points.
inline constexpr char32_t no_code_point = 0x110000;

/// The code points of a text, one for each character or stray byte.
inline std::u32string code_points(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length > 0)
      out += static_cast<char32_t>(code_point(text, length));
    else
      out += no_code_point + static_cast<unsigned char>(text.front());
    text.remove_prefix(length > 0 ? length : 1);
  }
  return out;
}

/// The text of these code points: the inverse of `code_points`.
inline std::string utf8(std::u32string_view codes) {
  std::string out;
  for (const char32_t code : codes) {
    if (code < no_code_point)
      append_utf8(out, static_cast<std::uint32_t>(code));
    else
      out += static_cast<char>(code - no_code_point);
  }
  return out;
}

}  // namespace infty::detail
