// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <infty/data/unicode.hpp>

namespace infty {

/// How much a text has in common with another one that it is measured by.
struct Overlap {
  double precision = 0;  ///< share of the hypothesis
  double recall = 0;     ///< share of the reference

  /// Their harmonic mean, 0 where both are.
  double f() const {
    return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
  }
};

namespace detail {

/// The shares that `common` units are of two texts; 0 where one is empty.
inline Overlap overlap(std::size_t common, std::size_t hypothesis, std::size_t reference) {
  if (hypothesis == 0 || reference == 0) return {};
  const auto n = static_cast<double>(common);
  return {n / static_cast<double>(hypothesis), n / static_cast<double>(reference)};
}

/// How many units two texts share, each at most as often as it stands in both.
template <class Unit>
std::size_t common_units(const std::vector<Unit>& hypothesis, const std::vector<Unit>& reference) {
  std::map<Unit, std::size_t> left;
  for (const Unit& unit : reference) ++left[unit];
  std::size_t common = 0;
  for (const Unit& unit : hypothesis) {
    const auto at = left.find(unit);
    if (at == left.end() || at->second == 0) continue;
    --at->second;
    ++common;
  }
  return common;
}

/// Whether Python's `str.split` splits at it: Unicode's white space and four separators of ASCII.
inline bool splits_words(char32_t code) {
  return (code >= 0x1C && code <= 0x1F) ||
         character_class(static_cast<std::uint32_t>(code)) == CharacterClass::space;
}

/// The runs of code points between those that split.
template <class Splits>
std::vector<std::u32string> split(std::u32string_view codes, Splits&& splits) {
  std::vector<std::u32string> words;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= codes.size(); ++i) {
    if (i < codes.size() && !splits(codes[i])) continue;
    if (i > begin) words.emplace_back(codes.substr(begin, i - begin));
    begin = i + 1;
  }
  return words;
}

}  // namespace detail

}  // namespace infty
