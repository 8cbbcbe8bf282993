// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/data/vocabulary.hpp>

namespace infty {

/// A conversation about a document.
struct Dialogue {
  std::string document;            ///< what it is about
  std::vector<std::string> turns;  ///< by two speakers in turns; the second one begins
};

/// Reads dialogues as the ∞-former's dialogue program writes them down: a line with `Document:` and
/// the document, a line with `Dialog:` and the first turn, and one for each other turn. An empty
/// line ends the turns; another `Dialog:` behind it goes on about the same document. Lines may end
/// in `\r\n`, as the program's reader has them.
/// @param keep_last  whether turns that no empty line ends are kept, also where another `Document:`
/// or `Dialog:` follows at once; the program loses them
/// @throws infty::ValueError that names the line where turns have no document
inline std::vector<Dialogue> read_dialogues(std::string_view text, bool keep_last = true) {
  std::vector<Dialogue> all;
  std::vector<std::string> turns;
  const auto without = [](std::string_view line, std::string_view mark) {
    std::string out;
    for (std::size_t at; (at = line.find(mark)) != line.npos; line.remove_prefix(at + mark.size()))
      out += line.substr(0, at);
    return out += line;
  };
  Index number = 0;
  const auto end_turns = [&] {
    if (turns.empty()) return;
    require(!all.empty(), "read_dialogues", "line ", number, ": turns without a `Document:`");
    auto& to = all.back().turns;
    to.insert(to.end(), turns.begin(), turns.end());
    turns.clear();
  };
  while (!text.empty()) {
    ++number;
    const std::size_t end = (std::min)(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix((std::min)(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool document = line.find("Document:") != line.npos;
    const bool dialog = !document && line.find("Dialog:") != line.npos;
    if (line.empty() || (keep_last && (document || dialog))) end_turns();
    if (document || dialog) turns.clear();  // never another's
    if (document)
      all.push_back({.document = without(line, "Document:"), .turns = {}});
    else if (dialog)
      turns.push_back(without(line, "Dialog:"));
    else if (!line.empty())
      turns.emplace_back(line);
  }
  if (keep_last) end_turns();
  return all;
}

/// The tokens that part a dialogue; a vocabulary gets them behind its others.
struct DialogueMarks {
  TokenId document = 0;  ///< in front of the document, and the type of its tokens
  TokenId end = 0;       ///< behind it
  TokenId first = 0;     ///< in front of the turns of the one who begins, and their type
  TokenId second = 0;    ///< the same of the other one
};

/// A dialogue's tokens.
struct DialogueTokens {
  std::vector<TokenId> tokens;  ///< the document with its marks, then the turns, each with its own
  std::vector<TokenId> types;   ///< whose each of them is: the mark in front
  std::vector<bool> said;       ///< whether it was said, and is neither the document's nor a mark

  /// Adds a turn, behind so many others.
  void add(const std::vector<TokenId>& turn, std::size_t behind, const DialogueMarks& marks) {
    const TokenId mark = behind % 2 == 0 ? marks.first : marks.second;
    put(mark, mark, false);
    for (const TokenId token : turn) put(token, mark, true);
  }

  /// Adds a token.
  void put(TokenId token, TokenId type, bool was_said) {
    tokens.push_back(token);
    types.push_back(type);
    said.push_back(was_said);
  }
};

/// The document's part of a dialogue, before anyone has said anything.
inline DialogueTokens document_tokens(const std::vector<TokenId>& document,
                                      const DialogueMarks& marks) {
  DialogueTokens out;
  out.put(marks.document, marks.document, false);
  for (const TokenId token : document) out.put(token, marks.document, false);
  out.put(marks.end, marks.document, false);
  return out;
}

/// A part of a sequence.
struct Piece {
  Index begin = 0;   ///< its first token
  Index length = 0;  ///< tokens

  bool operator==(const Piece&) const = default;  ///< whether both are the same part
};

/// Cuts a sequence from its end into pieces of so many tokens, the last of another length if asked;
/// the first is what is left. So the newest is whole. No pieces of an empty one.
/// @param last  the last one's length; 0 is as long as the others
/// @throws infty::ValueError unless `piece` is at least 1 and the others are not negative
inline std::vector<Piece> cut_from_end(Index length, Index piece, Index last = 0) {
  require_at_least("cut_from_end", "length", length, 0);
  require_at_least("cut_from_end", "piece", piece, 1);
  require_at_least("cut_from_end", "last", last, 0);
  std::vector<Piece> pieces;
  Index size = last > 0 ? last : piece;
  for (Index end = length; end > 0; end = pieces.back().begin, size = piece)
    pieces.push_back({(std::max)(Index{0}, end - size), (std::min)(end, size)});
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace infty
