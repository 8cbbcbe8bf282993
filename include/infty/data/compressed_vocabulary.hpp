// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/utf8.hpp>
#include <infty/data/unicode.hpp>
#include <infty/data/word_table.hpp>

namespace infty {

namespace detail {

/// Writes what a reader takes a character for behind a text: its NFKC and NFD without accents
/// (general category Mn), in lower case; nothing, one character, or several.
inline void append_folded(std::string& out, std::uint32_t code) {
  constexpr std::uint32_t hangul = 0xAC00, vowels = 21, tails = 28;
  if (code >= hangul && code < 0xD7A4) {  // by rule: a consonant, a vowel, and maybe one behind
    const std::uint32_t at = code - hangul, tail = at % tails;
    append_utf8(out, 0x1100 + at / (vowels * tails));
    append_utf8(out, 0x1161 + at / tails % vowels);
    if (tail > 0) append_utf8(out, 0x11A7 + tail);
    return;
  }
  const auto* const behind =
      std::upper_bound(std::begin(word_runs), std::end(word_runs), code,
                       [](std::uint32_t x, const auto& run) { return x < run[0]; });
  if (behind == std::begin(word_runs)) return append_utf8(out, code);
  const auto& [first, last, what] = behind[-1];
  const std::uint32_t kind = what >> 30U, to = what & 0x3FFFFFFFU;
  if (code > last || (kind == 2 && (code - first) % 2 == 1)) return append_utf8(out, code);
  if (kind < 3) return append_utf8(out, kind == 0 ? to : to + (code - first));
  for (std::uint32_t i = 0; i < to >> 16U; ++i)
    append_utf8(out, word_sequences[(to & 0xFFFFU) + i]);
}

/// A text without white space at its ends.
inline std::string_view stripped(std::string_view text) {
  const auto is_space = [](std::string_view part) {
    return first_character(part).kind == CharacterClass::space;
  };
  while (!text.empty() && is_space(text)) text.remove_prefix(first_character(text).length);
  while (!text.empty()) {
    const std::string_view last = character_at(text, text.size() - 1);
    if (!is_space(last)) break;
    text.remove_suffix(last.size());
  }
  return text;
}

}  // namespace detail

/// What a reader takes a token for: its text by NFKC and NFD, without accents, in lower case, every
/// run of blanks, tabs and ends of lines one blank, and none at the ends, unless it is one blank
/// alone [DeepSeek 2026, the program's CompressedTokenizer]. Bytes that are no UTF-8 stay. Letter
/// by letter: a sigma at the end of a word is one like others; spacing marks keep their order,
/// which NFD puts right for the two dozen of them that have one.
inline std::string canonical_word(std::string_view text) {
  std::string folded;
  while (!text.empty()) {
    const std::size_t length = detail::utf8_sequence(text);
    if (length > 0)
      detail::append_folded(folded, detail::code_point(text, length));
    else
      folded += text.front();
    text.remove_prefix(length > 0 ? length : 1);
  }
  std::string word;
  for (const char c : folded) {
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (!blank)
      word += c;
    else if (word.empty() || word.back() != ' ')
      word += ' ';
  }
  return word == " " ? word : std::string(detail::stripped(word));
}

/// Finds the words that an `Engram` tells apart: an id for every token, the same for those whose
/// `canonical_word` is, in the order in which these first appear. A token of which nothing is left
/// keeps its text; one that is no whole UTF-8, or holds U+FFFD in place of what was none, is a word
/// of its own.
/// @param tokens  their texts, as they decode one by one
/// @return        EngramConfig::lookup
inline std::vector<Index> compressed_vocabulary(std::span<const std::string> tokens) {
  std::unordered_map<std::string, Index> known;
  std::vector<Index> lookup;
  Index next = 0;
  for (const std::string& token : tokens) {
    if (detail::utf8_prefix(token) < token.size() ||
        token.find("\xEF\xBF\xBD") != std::string::npos) {
      lookup.push_back(next++);
      continue;
    }
    const std::string word = canonical_word(token);
    const auto [at, fresh] = known.emplace(word.empty() ? token : word, next);
    next += fresh ? 1 : 0;
    lookup.push_back(at->second);
  }
  return lookup;
}

}  // namespace infty
