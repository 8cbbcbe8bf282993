// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
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
#include "../known_tokens.hpp"
#include "../progress_line.hpp"
#include "../text_parts.hpp"
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
      open_encoding(s.bpe);
      return;
    }
    std::vector<std::string_view> counted = train;
    if (level_ != "word") counted.insert(counted.end(), held_out.begin(), held_out.end());
    Index bytes = 0, done = 0;
    for (const std::string_view text : counted) bytes += std::ssize(text);
    support::ProgressLine line("count", bytes, 0, "byte");
    infty::TokenCounts counts;
    for (const std::string_view text : counted)
      support::for_each_part(text, [&](std::string_view part) {
        counts.add_text(part, unit());
        line.update(done += std::ssize(part));
      });
    vocabulary_ = infty::Vocabulary(
        counts,
        {.min_count = s.min_count, .max_size = s.max_vocabulary, .unknown = level_ == "word"});
  }

  /// What `save` has put into a folder.
  Tokenizer(const std::string& level, const std::filesystem::path& folder) : level_(level) {
    if (level_ == "bpe") {
      open_encoding(folder);
    } else {
      vocabulary_ = infty::Vocabulary::load(folder / "vocabulary.txt");
    }
  }

  void save(const std::filesystem::path& folder) const {
    if (!encoding_) return vocabulary_.save(folder / "vocabulary.txt");
    for (const char* const name : names_)
      support::write_file(folder / name, infty::MappedFile(folder_ / name).text());
  }

  /// What `save` writes.
  std::string files() const {
    return encoding_ ? std::string(names_[0]) + " or " + names_[1] : "vocabulary.txt";
  }

  /// Another one for other tokens, or tokens of other numbers.
  std::uint64_t fingerprint() const {
    support::Fingerprint fingerprint;
    if (encoding_)
      for (const char* const name : names_)
        fingerprint.add_text(infty::MappedFile(folder_ / name).text());
    else
      for (Index id = 0; id < vocabulary_.size(); ++id) fingerprint.add_text(vocabulary_.token(id));
    return fingerprint.bits();
  }

  Index size() const { return encoding_ ? encoding_->size() : vocabulary_.size(); }

  std::vector<TokenId> encode(std::string_view text) const {
    return encoding_ ? encoding_->encode(text) : vocabulary_.encode(text, unit());
  }

  /// At which byte of a text each token of `encode` begins.
  std::vector<Index> offsets(std::string_view text) const {
    std::vector<Index> out;
    Index at = 0;
    if (encoding_) {
      for (const TokenId id : encoding_->encode(text)) {
        out.push_back(at);
        at += std::ssize(encoding_->decode(std::span(&id, 1)));
      }
      return out;
    }
    infty::for_each_token(text, unit(), [&](std::string_view token) {
      // The end of a line is a name; what it stands for is the next break, or the text's end.
      const bool inside = std::less_equal<>()(text.data(), token.data()) &&
                          std::less<>()(token.data(), text.data() + text.size());
      const auto line = inside ? 0 : text.find('\n', static_cast<std::size_t>(at));
      const Index begin =
          inside ? token.data() - text.data() : static_cast<Index>(std::min(line, text.size()));
      out.push_back(begin);
      at = begin + (inside ? std::ssize(token) : 1);
    });
    return out;
  }

  std::string decode(std::span<const TokenId> ids) const {
    return encoding_ ? encoding_->decode(ids) : vocabulary_.decode(ids, unit());
  }

  /// Makes the scores of what is no token -infinity, so that it is never drawn.
  void keep_known(std::vector<float>& scores) const {
    if (encoding_) support::keep_known(*encoding_, scores);
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
  /// By the names of Hugging Face's files, where there are such, or of the original program's.
  void open_encoding(const std::filesystem::path& folder) {
    folder_ = folder;
    if (std::filesystem::exists(folder / "vocab.json")) names_ = {"vocab.json", "merges.txt"};
    encoding_.emplace(folder / names_[0], folder / names_[1]);
  }

  infty::TextUnit unit() const {
    return level_ == "word"   ? infty::TextUnit::word
           : level_ == "char" ? infty::TextUnit::character
                              : infty::TextUnit::byte;
  }

  std::string level_;
  std::filesystem::path folder_;  // of the encoding's files
  std::array<const char*, 2> names_{"encoder.json", "vocab.bpe"};
  infty::Vocabulary vocabulary_;
  std::optional<infty::BytePairEncoding> encoding_;
};

}  // namespace language_model
