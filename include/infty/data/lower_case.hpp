// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include <infty/data/code_points.hpp>
#include <infty/data/lower_case_table.hpp>

namespace infty {

namespace detail {

/// A code point in lower case; itself if it has none, or becomes more than one.
inline char32_t lower_case(char32_t code) {
  const auto behind = std::upper_bound(
      std::begin(lower_case_runs), std::end(lower_case_runs), code,
      [](char32_t x, const LowerCaseRun& run) { return x < static_cast<char32_t>(run.first); });
  if (behind == std::begin(lower_case_runs)) return code;
  const LowerCaseRun& run = behind[-1];
  const auto x = static_cast<std::uint32_t>(code);
  if (x > run.last || (x - run.first) % run.step != 0) return code;
  return static_cast<char32_t>(static_cast<std::int64_t>(x) + run.added);
}

/// All of a text's code points in lower case. A sigma behind a letter, where none comes next, is
/// the one that ends words.
inline std::u32string lower_case(std::u32string_view codes) {
  constexpr char32_t dotted = 0x130, dot = 0x307, sigma = 0x3A3, last_sigma = 0x3C2;
  const auto letter = [&](std::size_t i) {
    return i < codes.size() &&
           character_class(static_cast<std::uint32_t>(codes[i])) == CharacterClass::letter;
  };
  std::u32string out;
  out.reserve(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == dotted)
      out += {U'i', dot};
    else if (codes[i] == sigma && i > 0 && letter(i - 1) && !letter(i + 1))
      out += last_sigma;
    else
      out += lower_case(codes[i]);
  }
  return out;
}

}  // namespace detail

/// Writes a text in lower case, as Python's `str.lower` does: by Unicode's mapping of each
/// character. For a sigma at a word's end neither marks nor apostrophes and stops within words are
/// looked through, and letters of scripts without case count as others do. Bytes that are no UTF-8
/// stay.
inline std::string lower_case(std::string_view text) {
  return detail::utf8(detail::lower_case(detail::code_points(text)));
}

}  // namespace infty
