// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>
#include <vector>

#include <infty/data/vocabulary.hpp>

namespace support {

/// Calls f(part) for the parts of a text in their order, so that progress through a long one can be
/// shown. A part ends behind a line break alone between two visible characters of ASCII, a mebibyte
/// from its beginning or later: there no word, token or character crosses, in any of the encodings,
/// and the tokens of the parts are those of the text.
template <class F>
void for_each_part(std::string_view text, F&& f) {
  constexpr std::size_t least = std::size_t{1} << 20;
  const auto visible = [](char c) { return c > ' ' && c < 0x7F; };
  while (!text.empty()) {
    std::size_t end = text.find('\n', least);
    while (end != std::string_view::npos &&
           (end + 1 == text.size() || !visible(text[end - 1]) || !visible(text[end + 1])))
      end = text.find('\n', end + 1);
    const std::string_view part = text.substr(0, end == std::string_view::npos ? end : end + 1);
    f(part);
    text.remove_prefix(part.size());
  }
}

/// The tokens of a text by encode(part), which calls read(bytes of the text so far) behind each.
template <class Encode, class Read>
std::vector<infty::TokenId> encode_parts(std::string_view text, Encode&& encode, Read&& read) {
  std::vector<infty::TokenId> tokens;
  infty::Index bytes = 0;
  for_each_part(text, [&](std::string_view part) {
    const auto more = encode(part);
    tokens.insert(tokens.end(), more.begin(), more.end());
    read(bytes += std::ssize(part));
  });
  return tokens;
}

}  // namespace support
