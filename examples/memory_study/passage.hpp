// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/utf8.hpp>
#include <infty/data/batch_stream.hpp>
#include <infty/data/dialogue.hpp>
#include <infty/data/vocabulary.hpp>

namespace memory_study {

using infty::Index;
using infty::Piece;
using infty::TokenId;

/// A text with U+FFFD in the place of each byte that is no UTF-8.
inline std::string as_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = infty::detail::utf8_sequence(text);
    if (length > 0)
      out += text.substr(0, length);
    else
      infty::detail::append_utf8(out, 0xFFFD);
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

/// How tokens are written on pages and in labels.
struct TokenTexts {
  /// To bytes, of whole characters or not.
  std::function<std::string(std::span<const TokenId>)> decode;
  std::string name = "token";  ///< what one is called
  bool spaced = false;         ///< whether they are words, with spaces between them

  /// Tokens as UTF-8. A token may be a part of a character: such bytes cannot be shown alone.
  std::string of(std::span<const TokenId> ids) const { return as_utf8(decode(ids)); }

  /// A token as UTF-8.
  std::string of(Index id) const {
    const auto token = static_cast<TokenId>(id);
    return of(std::span(&token, 1));
  }
};

/// A text as a model reads it from a fresh state: what comes in, what comes behind each of these,
/// and the segments that are read at once.
struct Passage {
  std::vector<Index> inputs, targets;
  std::vector<Index> types;  ///< of the inputs, for models with token types; empty for none
  std::vector<Piece> segments;
  std::vector<Index> retrieved = {};  ///< (inputs, k), looked up for them; empty for none

  /// What of some numbers, one an input or none at all, belongs to a segment.
  static std::vector<Index> part(const std::vector<Index>& of, const Piece& segment) {
    if (of.empty()) return of;
    return {of.begin() + segment.begin, of.begin() + segment.begin + segment.length};
  }

  /// A segment with its targets, for the losses of a model.
  infty::TextBatch batch(const Piece& segment) const {
    const Index each = std::ssize(retrieved) / std::max<Index>(1, std::ssize(inputs));
    return {.batch = 1,
            .length = segment.length,
            .inputs = part(inputs, segment),
            .targets = part(targets, segment),
            .retrieved = part(retrieved, {each * segment.begin, each * segment.length}),
            .predicted = segment.length,
            .reset = {}};
  }
};

/// A document, each token read behind the one in front of it, in segments of so many.
inline Passage passage_of(TokenId start, std::span<const TokenId> document, Index segment) {
  Passage passage;
  passage.inputs.push_back(static_cast<Index>(start));
  for (const TokenId id : document) {
    passage.inputs.push_back(static_cast<Index>(id));
    passage.targets.push_back(static_cast<Index>(id));
  }
  passage.inputs.pop_back();
  const auto length = std::ssize(passage.inputs);
  for (Index first = 0; first < length; first += segment)
    passage.segments.push_back({first, std::min<Index>(segment, length - first)});
  return passage;
}

/// The text of tokens with each stretch of white space as one space, and none at the ends.
inline std::string squeezed(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

/// Tokens [first, first + count) of a text, on one line.
inline std::string phrase_text(const TokenTexts& texts, const std::vector<Index>& ids, Index first,
                               Index count) {
  std::vector<TokenId> tokens;
  for (Index i = first; i < first + count; ++i)
    tokens.push_back(static_cast<TokenId>(ids[static_cast<std::size_t>(i)]));
  return squeezed(texts.of(tokens));
}

}  // namespace memory_study
