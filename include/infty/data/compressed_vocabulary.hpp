// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/utf8.hpp>
#include <infty/data/gpt2_text.hpp>
#include <infty/data/unicode.hpp>
#include <infty/data/word_table.hpp>

namespace infty {

namespace detail {

/// What a reader takes characters for: `word_runs`, read once.
class WordTable {
 public:
  /// The one there is.
  static const WordTable& instance() {
    static const WordTable table;
    return table;
  }

  /// Writes what a character becomes behind a text; the character itself if it is in no run.
  void append(std::string& out, std::uint32_t code) const {
    const auto behind =
        std::upper_bound(runs_.begin(), runs_.end(), code,
                         [](std::uint32_t x, const Run& run) { return x < run.first; });
    if (behind == runs_.begin()) return append_utf8(out, code);
    const Run& run = behind[-1];
    if (code > run.last || (run.kind == 2 && (code - run.first) % 2 == 1))
      return append_utf8(out, code);
    for (std::size_t i = run.begin; i < run.end; ++i)
      append_utf8(out, codes_[i] + (run.kind == 1 || run.kind == 2 ? code - run.first : 0));
  }

 private:
  struct Run {
    std::uint32_t first, last, kind;
    std::size_t begin, end;  // of codes_, what the first becomes
  };

  WordTable() {
    std::uint32_t behind = 0, before = 0;
    for (std::string_view rest = word_runs; !rest.empty();) {
      Run run{
          .first = behind + number(rest), .last = 0, .kind = 0, .begin = codes_.size(), .end = 0};
      const std::uint32_t extent = number(rest);
      run.kind = extent & 3U;
      run.last = run.first + (extent >> 2U);
      for (std::uint32_t left = run.kind == 3 ? number(rest) : 1; left > 0; --left) {
        const std::uint32_t difference = number(rest);
        before += difference >> 1U ^ (0U - (difference & 1U));
        codes_.push_back(before);
      }
      run.end = codes_.size();
      runs_.push_back(run);
      behind = run.last + 1;
    }
  }

  static std::uint32_t number(std::string_view& rest) {
    std::uint32_t value = 0, digit = 32;
    for (unsigned shift = 0; digit >= 32; shift += 5) {
      digit = static_cast<std::uint32_t>(word_digits.find(rest.front()));
      value |= (digit & 31U) << shift;
      rest.remove_prefix(1);
    }
    return value;
  }

  std::vector<Run> runs_;
  std::vector<std::uint32_t> codes_;
};

/// Writes what a reader takes a character for behind a text: its NFKC and NFD without marks, such
/// as accents and the vowel signs of Hindi (general category M), in lower case; nothing, one
/// character, or several.
inline void append_folded(std::string& out, std::uint32_t code) {
  constexpr std::uint32_t hangul = 0xAC00, vowels = 21, tails = 28;
  if (code < hangul || code >= 0xD7A4) return WordTable::instance().append(out, code);
  // By rule: a consonant, a vowel, and maybe one behind.
  const std::uint32_t at = code - hangul, tail = at % tails;
  append_utf8(out, 0x1100 + at / (vowels * tails));
  append_utf8(out, 0x1161 + at / tails % vowels);
  if (tail > 0) append_utf8(out, 0x11A7 + tail);
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

/// What a reader takes a token for: its text by NFKC and NFD, without marks, in lower case, every
/// run of blanks, tabs and ends of lines one blank, and none at the ends, unless it is one blank
/// alone [DeepSeek 2026, the program's CompressedTokenizer]. Bytes that are no UTF-8 stay. Letter
/// by letter, as there: a sigma at the end of a word is one like others.
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
/// keeps its text. One that is no whole UTF-8 is the word by which a byte-level encoding writes its
/// bytes: the byte F0, "ð" there, is the same as that letter, as in the program. One that holds
/// U+FFFD, perhaps in place of bytes that were none, is a word of its own.
/// @param tokens  their texts, as they decode one by one
/// @return        EngramConfig::lookup
inline std::vector<Index> compressed_vocabulary(std::span<const std::string> tokens) {
  std::unordered_map<std::string, Index> known;
  std::vector<Index> lookup;
  Index next = 0;
  for (const std::string& token : tokens) {
    if (token.find("\xEF\xBF\xBD") != std::string::npos) {
      lookup.push_back(next++);
      continue;
    }
    const bool text = detail::utf8_prefix(token) == token.size();
    const std::string word = text ? canonical_word(token) : detail::symbols_of_bytes(token);
    const auto [at, fresh] = known.emplace(word.empty() ? token : word, next);
    next += fresh ? 1 : 0;
    lookup.push_back(at->second);
  }
  return lookup;
}

}  // namespace infty
