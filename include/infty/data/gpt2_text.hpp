// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <infty/core/utf8.hpp>
#include <infty/data/unicode.hpp>
#include <infty/io/json.hpp>

/// How GPT-2 cuts a text into pieces, and how its files write bytes.
namespace infty::detail {

/// Length of the first piece that GPT-2's pattern cuts from a text that is not empty:
/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.
inline std::size_t gpt2_piece(std::string_view text) {
  for (const std::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(contraction)) return contraction.size();
  // The end of the characters of one class from `at` on, and where the last of them begins.
  const auto run = [&](std::size_t at, CharacterClass kind) {
    std::size_t last = at;
    while (at < text.size()) {
      const Character next = first_character(text.substr(at));
      if (next.kind != kind) break;
      last = at;
      at += next.length;
    }
    return std::pair(at, last);
  };
  const std::size_t begin = text.front() == ' ' && text.size() > 1 ? 1 : 0;
  const CharacterClass kind = first_character(text.substr(begin)).kind;
  if (kind != CharacterClass::space) return run(begin, kind).first;
  // White space in front of something leaves its last character to it, unless it is all there is.
  const auto [end, last] = run(0, CharacterClass::space);
  return end == text.size() || last == 0 ? end : last;
}

/// The code point by which GPT-2's files write each byte: itself where that can be seen, and from
/// U+0100 on for all others in their order.
inline std::array<std::uint32_t, 256> gpt2_byte_symbols() {
  std::array<std::uint32_t, 256> symbol{};
  std::uint32_t next = 256;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool seen = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    symbol[byte] = seen ? byte : next++;
  }
  return symbol;
}

/// The symbols by which GPT-2's files write a token's bytes.
inline std::string symbols_of_bytes(std::string_view bytes) {
  static const auto symbol = gpt2_byte_symbols();
  std::string out;
  for (const char byte : bytes) append_utf8(out, symbol[static_cast<unsigned char>(byte)]);
  return out;
}

/// The bytes that a token's symbols stand for; empty if one of them stands for none.
inline std::optional<std::string> bytes_of_symbols(std::string_view symbols) {
  static const std::unordered_map<std::string, char> byte_of = [] {
    std::unordered_map<std::string, char> map;
    for (unsigned byte = 0; byte < 256; ++byte)
      map.emplace(symbols_of_bytes(std::string(1, static_cast<char>(byte))),
                  static_cast<char>(byte));
    return map;
  }();
  std::string out;
  while (!symbols.empty()) {
    const std::size_t length = utf8_sequence(symbols);
    const auto at = byte_of.find(std::string(symbols.substr(0, length)));
    if (length == 0 || at == byte_of.end()) return std::nullopt;
    out += at->second;
    symbols.remove_prefix(length);
  }
  return out;
}

}  // namespace infty::detail
