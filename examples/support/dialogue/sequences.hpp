// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/data/byte_pair_encoding.hpp>
#include <infty/data/dialogue.hpp>
#include <infty/io/mapped_file.hpp>
#include <infty/nn/cross_entropy.hpp>

#include "../fingerprint.hpp"

// Dialogues as a model reads them: tokens with their types and targets, in chunks.

namespace dialogue {

using infty::Dialogue;
using infty::DialogueMarks;
using infty::DialogueTokens;
using infty::Index;
using infty::TokenId;
using Tokens = std::vector<TokenId>;

/// The tokens that a dialogue's vocabulary has behind GPT-2's own, in this order.
inline const std::vector<std::string> mark_names{"<bos>",      "<eos>",      "<pad>",
                                                 "<speaker1>", "<speaker2>", "<doc>"};

/// The marks of a vocabulary whose first so many tokens are GPT-2's own.
inline DialogueMarks marks_behind(Index vocabulary) {
  const auto number = [&](Index mark) { return static_cast<TokenId>(vocabulary + mark); };
  return {.document = number(5), .end = number(1), .first = number(4), .second = number(3)};
}

/// GPT-2's encoding, and the marks behind its tokens.
class Tokenizer {
 public:
  /// @param vocabulary  tokens of the model without the marks
  Tokenizer(infty::BytePairEncoding encoding, Index vocabulary)
      : encoding_(std::move(encoding)), marks_(marks_behind(vocabulary)), own_(vocabulary) {
    infty::require(encoding_.size() <= vocabulary, "dialogue", "the tokenizer has ",
                   encoding_.size(), " tokens, the model ", vocabulary);
  }

  const DialogueMarks& marks() const { return marks_; }
  /// Tokens of the model with the marks.
  Index size() const { return own_ + static_cast<Index>(mark_names.size()); }

  Tokens encode(std::string_view text) const { return encoding_.encode(text); }

  /// A turn: its text, and the mark that ends it.
  Tokens encode_turn(std::string_view text) const {
    Tokens turn = encode(text);
    turn.push_back(marks_.end);
    return turn;
  }

  /// The text of tokens; those that no text has, marks among them, are left out.
  std::string decode(const Tokens& tokens) const {
    std::string text;
    for (const TokenId id : tokens)
      if (encoding_.has(id)) text += encoding_.token(id);
    return text;
  }

  /// Whether an answer ends with this token: any mark.
  bool ends(TokenId id) const { return id >= own_; }

 private:
  infty::BytePairEncoding encoding_;
  DialogueMarks marks_;
  Index own_;
};

/// A dialogue in tokens.
struct Encoded {
  Tokens document;
  std::vector<Tokens> turns;       ///< each with the mark that ends it
  std::vector<std::string> texts;  ///< of the turns
};

/// A text without white space at its ends, and without an `<eos>` behind it.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view white = " \t\r\n", end = "<eos>";
  const auto cut = [&] {
    text = text.substr(0, text.find_last_not_of(white) + 1);
    text.remove_prefix(std::min(text.find_first_not_of(white), text.size()));
  };
  cut();
  if (text.ends_with(end)) {
    text.remove_suffix(end.size());
    cut();
  }
  return text;
}

/// A part of the data in tokens, and what tells its text from others.
struct Split {
  std::vector<Encoded> dialogues;
  std::string fingerprint;
};

/// Reads NAME.txt of a folder that `prepare` wrote, or another of the same form.
/// @throws infty::IoError that names the file, if it is missing, not of that form, or has no
/// dialogue
inline Split read_split(const std::filesystem::path& folder, const std::string& name,
                        const Tokenizer& tokenizer) {
  const auto path = folder / (name + ".txt");
  const infty::MappedFile file(path);
  support::Fingerprint print;
  print.add_text(file.text());
  Split split{.dialogues = {}, .fingerprint = support::as_hex(print.bits())};
  std::map<std::string, Tokens> known;  // many dialogues are about one document
  const auto dialogues = infty::detail::explained<infty::ValueError>(
      [&] { return infty::read_dialogues(file.text()); },
      [&](const char* what) {
        infty::raise<infty::IoError>("dialogue", path.string(), ": ", what);
      });
  for (const Dialogue& dialogue : dialogues) {
    auto [at, is_new] = known.try_emplace(dialogue.document);
    if (is_new) at->second = tokenizer.encode(trimmed(dialogue.document));
    Encoded encoded{.document = at->second, .turns = {}, .texts = {}};
    for (const std::string& turn : dialogue.turns) {
      encoded.texts.emplace_back(trimmed(turn));
      encoded.turns.push_back(tokenizer.encode_turn(encoded.texts.back()));
    }
    if (!encoded.turns.empty()) split.dialogues.push_back(std::move(encoded));
  }
  infty::require<infty::IoError>(!split.dialogues.empty(), "dialogue", path.string(),
                                 " has no dialogue: `dialogue prepare` makes such files");
  return split;
}

/// What a form of the model sees of a document.
struct Seen {
  bool document = true;  ///< whether it sees it
  Index most = 0;        ///< only its first so many tokens; 0: all
};

/// The sequence of a dialogue's first `turns` turns.
inline DialogueTokens sequence_of(const Encoded& dialogue, std::size_t turns, const Seen& seen,
                                  const DialogueMarks& marks) {
  DialogueTokens all;
  if (seen.document) {
    Tokens document = dialogue.document;
    if (seen.most > 0 && std::ssize(document) > seen.most)
      document.resize(static_cast<std::size_t>(seen.most));
    all = infty::document_tokens(document, marks);
  }
  for (std::size_t i = 0; i < turns; ++i) all.add(dialogue.turns[i], i, marks);
  return all;
}

/// Part of a sequence that is read at once.
struct Chunk {
  std::vector<Index> tokens, types;  ///< [L]
  std::vector<Index> targets;        ///< [L], the next token, or `infty::ignore_index`
  Index predicted = 0;               ///< targets that count
};

/// The chunks of a sequence, cut from its end, the last one of another length if asked. Each
/// predicts within itself: its first token is nobody's target. A chunk of one token predicts
/// nothing.
/// @param all  whether every token is a target, or only those that were said
inline std::vector<Chunk> chunks_of(const DialogueTokens& sequence, Index length, bool all,
                                    Index last = 0) {
  std::vector<Chunk> chunks;
  for (const infty::Piece& piece : infty::cut_from_end(std::ssize(sequence.tokens), length, last)) {
    Chunk& chunk = chunks.emplace_back();
    for (Index i = 0; i < piece.length; ++i) {
      const auto at = static_cast<std::size_t>(piece.begin + i);
      const bool counts = i + 1 < piece.length && (all || sequence.said[at + 1]);
      chunk.tokens.push_back(sequence.tokens[at]);
      chunk.types.push_back(sequence.types[at]);
      chunk.targets.push_back(counts ? sequence.tokens[at + 1] : infty::ignore_index);
      chunk.predicted += counts ? 1 : 0;
    }
  }
  return chunks;
}

/// The same for training and perplexity, which pass over a first chunk of one token.
inline std::vector<Chunk> predicted_chunks(const DialogueTokens& sequence, Index length, bool all) {
  auto chunks = chunks_of(sequence, length, all);
  if (!chunks.empty() && chunks.front().tokens.size() < 2) chunks.erase(chunks.begin());
  return chunks;
}

}  // namespace dialogue
