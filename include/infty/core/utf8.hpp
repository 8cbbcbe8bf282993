// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace infty::detail {

/// Counts the bytes of the well-formed UTF-8 sequence that `text` begins with, 0 if there is none
/// (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF).
inline std::size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
  };
  const auto within = [&](std::size_t i, unsigned low, unsigned high) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (text.empty()) return 0;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return within(1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80, high = lead == 0xED ? 0x9F : 0xBF;
    return within(1, low, high) && within(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xF4 ? 0x8F : 0xBF;
    return within(1, low, high) && within(2, 0x80, 0xBF) && within(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

/// Writes a code point, which must be one and no surrogate, behind a text.
inline void append_utf8(std::string& out, std::uint32_t code) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
  };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | (code >> 6U));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0U | (code >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

/// Finds the first byte that is not well-formed UTF-8; `text.size()` if all of it is.
inline std::size_t utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_sequence(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

/// The character that byte `at` of a text belongs to: a UTF-8 sequence, or the byte alone.
inline std::string_view character_at(std::string_view text, std::size_t at) {
  for (std::size_t begin = at < 3 ? 0 : at - 3; begin <= at; ++begin) {
    const std::size_t length = utf8_sequence(text.substr(begin));
    if (begin + length > at) return text.substr(begin, length);
  }
  return text.substr(at, 1);
}

/// Whether a UTF-8 sequence may be shown: it is no control character, none that turns the direction
/// in which the others are read, and none that Unicode has invisible
/// (Default_Ignorable_Code_Point), but for variation selectors, by which the one in front is drawn
/// otherwise.
inline bool is_shown(std::string_view sequence) {
  if (sequence.size() == 1) return sequence.front() >= ' ' && sequence.front() <= '~';
  const auto within = [&](std::string_view low, std::string_view high) {
    return sequence.size() == low.size() && low <= sequence && sequence <= high;
  };
  for (const std::string_view invisible : {"\xC2\xAD", "\xCD\x8F", "\xE3\x85\xA4", "\xEF\xBE\xA0"})
    if (sequence == invisible) return false;
  return !within("\xC2\x80", "\xC2\x9F") && !within("\xE1\x85\x9F", "\xE1\x85\xA0") &&
         !within("\xE1\x9E\xB4", "\xE1\x9E\xB5") && !within("\xE1\xA0\x8B", "\xE1\xA0\x8F") &&
         !within("\xE2\x80\x8B", "\xE2\x80\x8F") && !within("\xE2\x80\xA8", "\xE2\x80\xAE") &&
         !within("\xE2\x81\xA0", "\xE2\x81\xAF") && sequence != "\xD8\x9C" &&
         sequence != "\xEF\xBB\xBF" && !within("\xEF\xBF\xB0", "\xEF\xBF\xBF") &&
         !within("\xF0\x9B\xB2\xA0", "\xF0\x9B\xB2\xA3") &&
         !within("\xF0\x9D\x85\xB3", "\xF0\x9D\x85\xBA") &&
         !within("\xF3\xA0\x80\x80", "\xF3\xA0\xBF\xBF");
}

/// Makes `text` fit for a message: in quotation marks, at most 80 characters, and a `?` for what is
/// no UTF-8 or not to be shown. What a hostile file calls its tensors must not reach a terminal as
/// it is.
inline std::string printable(std::string_view text) {
  constexpr int limit = 80;
  std::string out = "'";
  for (int shown = 0; shown < limit && !text.empty(); ++shown) {
    const std::size_t length = utf8_sequence(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length > 0 && is_shown(character))
      out += character;
    else
      out += '?';
    text.remove_prefix(character.size());
  }
  return out += text.empty() ? "'" : "...'";
}

}  // namespace infty::detail
