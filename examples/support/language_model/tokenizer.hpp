// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/data/byte_pair_encoding.hpp>
#include <infty/data/vocabulary.hpp>
#include <infty/io/mapped_file.hpp>

#include "../files.hpp"
#include "../fingerprint.hpp"
#include "settings.hpp"

namespace language_model {

using infty::TokenId;

/// What turns text into tokens and back at one of the levels.
class Tokenizer {
 public:
  /// Of the words of the text that is trained on; of the characters or bytes of all of it, as is
  /// usual there; or the files that the settings name.
  Tokenizer(const Settings& s, const std::vector<std::string_view>& train,
            const std::vector<std::string_view>& held_out)
      : level_(s.level) {
    if (level_ == "bpe") {
      folder_ = s.bpe;
      encoding_.emplace(folder_ / "encoder.json", folder_ / "vocab.bpe");
      return;
    }
    infty::TokenCounts counts;
    for (const std::string_view text : train) counts.add_text(text, unit());
    if (level_ != "word")
      for (const std::string_view text : held_out) counts.add_text(text, unit());
    vocabulary_ = infty::Vocabulary(
        counts,
        {.min_count = s.min_count, .max_size = s.max_vocabulary, .unknown = level_ == "word"});
  }

  /// What `save` has put into a folder.
  Tokenizer(const std::string& level, const std::filesystem::path& folder) : level_(level) {
    if (level_ == "bpe") {
      folder_ = folder;
      encoding_.emplace(folder / "encoder.json", folder / "vocab.bpe");
    } else {
      vocabulary_ = infty::Vocabulary::load(folder / "vocabulary.txt");
    }
  }

  void save(const std::filesystem::path& folder) const {
    if (!encoding_) return vocabulary_.save(folder / "vocabulary.txt");
    for (const char* const name : {"encoder.json", "vocab.bpe"})
      support::write_file(folder / name, infty::MappedFile(folder_ / name).text());
  }

  /// What `save` writes.
  const char* files() const { return encoding_ ? "encoder.json or vocab.bpe" : "vocabulary.txt"; }

  /// Another one for other tokens, or tokens of other numbers.
  std::uint64_t fingerprint() const {
    support::Fingerprint fingerprint;
    if (encoding_)
      for (const char* const name : {"encoder.json", "vocab.bpe"})
        fingerprint.add_text(infty::MappedFile(folder_ / name).text());
    else
      for (Index id = 0; id < vocabulary_.size(); ++id) fingerprint.add_text(vocabulary_.token(id));
    return fingerprint.bits();
  }

  Index size() const { return encoding_ ? encoding_->size() : vocabulary_.size(); }

  std::vector<TokenId> encode(std::string_view text) const {
    return encoding_ ? encoding_->encode(text) : vocabulary_.encode(text, unit());
  }

  std::string decode(std::span<const TokenId> ids) const {
    return encoding_ ? encoding_->decode(ids) : vocabulary_.decode(ids, unit());
  }

  /// What the first token of a text is predicted from: the end of a line or of a text before it,
  /// where there is a token for this.
  TokenId start() const {
    if (encoding_) return encoding_->find("<|endoftext|>").value_or(0);
    return vocabulary_.find(level_ == "word" ? infty::end_of_line : "\n").value_or(0);
  }

  /// The token that stands for what is not in the vocabulary.
  std::optional<TokenId> unknown() const {
    return level_ == "word" ? vocabulary_.find(infty::unknown_word) : std::nullopt;
  }

  /// What one token is called.
  const char* token_name() const {
    return level_ == "word"   ? "word"
           : level_ == "char" ? "character"
           : level_ == "byte" ? "byte"
                              : "token";
  }

 private:
  infty::TextUnit unit() const {
    return level_ == "word"   ? infty::TextUnit::word
           : level_ == "char" ? infty::TextUnit::character
                              : infty::TextUnit::byte;
  }

  std::string level_;
  std::filesystem::path folder_;  // of the encoding's files
  infty::Vocabulary vocabulary_;
  std::optional<infty::BytePairEncoding> encoding_;
};

}  // namespace language_model
