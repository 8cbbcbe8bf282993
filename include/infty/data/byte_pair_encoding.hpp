// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/data/gpt2_text.hpp>
#include <infty/data/tokenizer_json.hpp>
#include <infty/data/vocabulary.hpp>
#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>

namespace infty {

/// GPT-2's byte-level byte pair encoding [Radford et al. 2019, §2.2], read from its `encoder.json`
/// and `vocab.bpe`, which Hugging Face calls `vocab.json` and `merges.txt`, from its
/// `tokenizer.json`, or from files of the same form for other vocabularies.
///
/// A text is cut into pieces by GPT-2's pattern; each piece begins as its bytes, and the pair of
/// neighbours that stands first in the list of merges is merged until there is none. Any bytes can
/// be encoded: those that are no UTF-8 are cut as if each were a punctuation mark. The time is that
/// of the length of the text times the logarithm of its longest piece.
/// Names such as `<|endoftext|>` are plain text here; `find` has their number.
/// @post  decode(encode(text)) == text
class BytePairEncoding {
 public:
  /// Numbers may have holes, but are below 64 times the number of tokens: a small file must not ask
  /// for a large model.
  /// @throws infty::IoError if a file is missing, is not of the format, has a number twice or too
  /// large, or has merges of what is no token or into what is none
  BytePairEncoding(const std::filesystem::path& encoder_json,
                   const std::filesystem::path& vocab_bpe) {
    read_tokens(encoder_json);
    read_merges(vocab_bpe);
  }

  /// Reads a `tokenizer.json` as Hugging Face's programs write it, with the tokens that were added.
  /// @throws infty::IoError as the constructor, and for one that cuts texts otherwise than GPT-2:
  /// another model than BPE, a normalizer, another pre-tokenizer than plain ByteLevel
  static BytePairEncoding from_tokenizer_json(const std::filesystem::path& path) {
    const MappedFile file(path);
    const std::string where = path.string();
    const auto read = detail::read_tokenizer_json(file.text(), where);
    BytePairEncoding made;
    Numbered by_number;
    const auto fail = [&](const auto&... parts) {
      raise<IoError>("BytePairEncoding", where, ": ", parts...);
    };
    for (const auto& [symbols, id] : read.tokens)
      made.add_token(detail::bytes_of_symbols(symbols), symbols, id, by_number, fail);
    for (const auto& [bytes, id] : read.added) {
      const auto known = made.find(bytes);  // most stand among the others, too
      if (!known || static_cast<std::uint64_t>(*known) != id)
        made.add_token(bytes, bytes, id, by_number, fail);
    }
    made.number_tokens(by_number, where);
    Index number = 0;
    const auto fail_merge = [&](const auto&... parts) { fail("merge ", number, ": ", parts...); };
    for (const auto& [left, right] : read.merges) made.add_merge(left, right, ++number, fail_merge);
    return made;
  }

  /// Reads the files of a folder: `tokenizer.json`, else `vocab.json` and `merges.txt`, else
  /// `encoder.json` and `vocab.bpe`, which are of the same form.
  /// @throws infty::IoError if there are none of these, and as the others
  static BytePairEncoding from_folder(const std::filesystem::path& folder) {
    std::error_code ignored;
    const auto there = [&](const char* name) { return exists(folder / name, ignored); };
    if (there("tokenizer.json")) return from_tokenizer_json(folder / "tokenizer.json");
    if (there("vocab.json") || !there("encoder.json"))
      return {folder / "vocab.json", folder / "merges.txt"};
    return {folder / "encoder.json", folder / "vocab.bpe"};
  }

  /// One more than the largest number of a token.
  Index size() const { return static_cast<Index>(tokens_.size()); }

  /// Whether there is a token of this number: a model may know numbers that no token has.
  bool has(Index id) const {
    return id >= 0 && id < size() && !tokens_[static_cast<std::size_t>(id)].empty();
  }

  /// Returns the bytes of a token. @throws infty::ValueError if there is none of this number
  const std::string& token(Index id) const {
    require(has(id), "BytePairEncoding", "there is no token ", id, ": the largest is ", size() - 1);
    return tokens_[static_cast<std::size_t>(id)];
  }

  /// Finds the number of the token that has these bytes, if there is one.
  std::optional<TokenId> find(std::string_view bytes) const {
    const auto at = ids_.find(bytes);
    return at == ids_.end() ? std::nullopt : std::optional(at->second);
  }

  /// Encodes a text by its tokens. @throws infty::ValueError that names a byte which is no token;
  /// GPT-2's files have all of them
  std::vector<TokenId> encode(std::string_view text) const {
    require(!tokens_.empty(), "BytePairEncoding", "there are no tokens: it was moved from");
    constexpr std::size_t longest = 32, most = 1U << 16U;  // words come again, long pieces do not
    std::unordered_map<std::string_view, std::vector<TokenId>> known;
    std::vector<TokenId> out;
    Merger merger(*this);
    while (!text.empty()) {
      const std::string_view piece = text.substr(0, detail::gpt2_piece(text));
      text.remove_prefix(piece.size());
      if (const auto at = known.find(piece); at != known.end()) {
        out.insert(out.end(), at->second.begin(), at->second.end());
        continue;
      }
      const auto begin = static_cast<std::ptrdiff_t>(out.size());
      merger.append(piece, out);
      if (piece.size() <= longest && known.size() < most)
        known.emplace(piece, std::vector<TokenId>(out.begin() + begin, out.end()));
    }
    return out;
  }

  /// Decodes tokens to their bytes, one behind the other. @throws infty::ValueError for a number of
  /// no token
  std::string decode(std::span<const TokenId> ids) const {
    std::string out;
    for (const TokenId id : ids) out += token(id);
    return out;
  }

 private:
  struct Merge {
    Index rank;
    TokenId made;
  };

  static std::uint64_t key(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(left) << 32U | static_cast<std::uint64_t>(right);
  }

  const Merge* merge_of(TokenId left, TokenId right) const {
    const auto at = merges_.find(key(left, right));
    return at == merges_.end() ? nullptr : &at->second;
  }

  /// Encodes pieces; keeps its memory from one to the next.
  class Merger {
   public:
    explicit Merger(const BytePairEncoding& encoding) : encoding_(encoding) {}

    void append(std::string_view piece, std::vector<TokenId>& out) {
      parts_.clear();
      for (std::size_t i = 0; i < piece.size(); ++i) {
        const auto byte = static_cast<unsigned char>(piece[i]);
        const TokenId id = encoding_.of_byte_[byte];
        if (id < 0)
          raise<ValueError>("BytePairEncoding::encode", "the byte ", static_cast<int>(byte),
                            " is no token of this vocabulary: it is of ",
                            detail::printable(detail::character_at(piece, i)));
        parts_.push_back({id, i > 0 ? i - 1 : 0, i + 1});
      }
      for (std::size_t i = 0; i + 1 < parts_.size(); ++i) find_merge(i);
      while (!waiting_.empty()) merge_first();
      for (std::size_t i = 0; i < parts_.size(); i = parts_[i].next) out.push_back(parts_[i].id);
    }

   private:
    /// A token, what stands before it (itself if nothing does) and behind it.
    struct Part {
      TokenId id;
      std::size_t before, next;
    };
    /// The merge of a part with the next one, if they are still these.
    struct Candidate {
      Index rank;
      std::size_t at;
      TokenId left, right, made;

      bool operator>(const Candidate& other) const {
        return std::tie(rank, at) > std::tie(other.rank, other.at);
      }
    };

    void find_merge(std::size_t at) {
      const std::size_t next = parts_[at].next;
      if (next >= parts_.size()) return;
      const TokenId left = parts_[at].id, right = parts_[next].id;
      if (const Merge* const merge = encoding_.merge_of(left, right))
        waiting_.push({merge->rank, at, left, right, merge->made});
    }

    /// Applies the first merge wherever it can be, from left to right. What it makes possible waits
    /// until then: a list may hold merges that come before those that make their parts.
    void merge_first() {
      const Index rank = waiting_.top().rank;
      changed_.clear();
      while (!waiting_.empty() && waiting_.top().rank == rank) {
        const Candidate c = waiting_.top();
        waiting_.pop();
        Part& part = parts_[c.at];
        if (part.id != c.left || part.next >= parts_.size() || parts_[part.next].id != c.right)
          continue;
        Part& right = parts_[part.next];
        part.id = c.made;
        part.next = right.next;
        right.id = -1;  // which no candidate names
        if (part.next < parts_.size()) parts_[part.next].before = c.at;
        changed_.push_back(c.at);
      }
      for (const std::size_t at : changed_) {
        if (parts_[at].id < 0) continue;
        find_merge(at);
        if (at > 0) find_merge(parts_[at].before);
      }
    }

    const BytePairEncoding& encoding_;
    std::vector<Part> parts_;
    std::vector<std::size_t> changed_;
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> waiting_;
  };

  using Numbered = std::map<std::uint64_t, std::string>;

  BytePairEncoding() = default;

  /// Adds a token; `written` is as a file has it.
  template <class Fail>
  void add_token(const std::optional<std::string>& bytes, const std::string& written,
                 std::uint64_t id, Numbered& by_number, const Fail& fail) {
    if (!bytes || bytes->empty())
      fail("the token ", detail::printable(written), " is not written in symbols of bytes");
    if (!by_number.emplace(id, *bytes).second) fail("two tokens have the number ", id);
    // That it is a TokenId is found when all tokens are counted.
    if (!ids_.emplace(*bytes, static_cast<TokenId>(id)).second)
      fail("the token ", detail::printable(written), " is repeated");
  }

  void number_tokens(Numbered& by_number, const std::string& where) {
    of_byte_.fill(-1);
    require<IoError>(!by_number.empty(), "BytePairEncoding", where, ": there is no token");
    const std::uint64_t largest = by_number.rbegin()->first;
    const auto limit = std::min<std::uint64_t>(64 * by_number.size(), 1U << 24U);
    require<IoError>(largest < limit, "BytePairEncoding", where, ": a token has the number ",
                     largest, ": with ", by_number.size(), " tokens it must be below ", limit);
    tokens_.resize(largest + 1);
    for (auto& [id, bytes] : by_number) {
      if (bytes.size() == 1)
        of_byte_[static_cast<unsigned char>(bytes.front())] = static_cast<TokenId>(id);
      tokens_[id] = std::move(bytes);
    }
  }

  void read_tokens(const std::filesystem::path& path) {
    const MappedFile file(path);
    const std::string where = path.string();
    detail::JsonReader json(file.text(), where);
    Numbered by_number;
    json.object([&](const std::string& symbols) {
      add_token(detail::bytes_of_symbols(symbols), symbols, json.integer(), by_number,
                [&](const auto&... parts) { json.fail(parts...); });
    });
    json.finish();
    number_tokens(by_number, where);
  }

  template <class Fail>
  void add_merge(std::string_view one, std::string_view other, Index number, const Fail& fail) {
    const auto known = [&](std::string_view symbols) {
      const auto bytes = detail::bytes_of_symbols(symbols);
      const auto id = bytes ? find(*bytes) : std::nullopt;
      if (!id) fail(detail::printable(symbols), " is no token");
      return *id;
    };
    const std::string both = std::string(one) + ' ' + std::string(other);
    const TokenId left = known(one), right = known(other);
    const auto made = find(token(left) + token(right));
    if (!made) fail(detail::printable(both), " makes what is no token");
    if (!merges_.emplace(key(left, right), Merge{number, *made}).second)
      fail(detail::printable(both), " has come before");
  }

  void read_merges(const std::filesystem::path& path) {
    const MappedFile file(path);
    std::string_view text = file.text();
    for (Index number = 1; !text.empty(); ++number) {
      const std::size_t end = (std::min)(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix((std::min)(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
      const auto fail = [&](const auto&... parts) {
        raise<IoError>("BytePairEncoding", path.string(), ": line ", number, ": ", parts...);
      };
      const auto pair = detail::split_merge(line);
      if (!pair) fail(detail::printable(line), " is not two symbols with a space between them");
      add_merge(pair->first, pair->second, number, fail);
    }
  }

  std::vector<std::string> tokens_;  // the bytes of each; empty where a number is not taken
  std::unordered_map<std::string, TokenId, detail::StringHash, std::equal_to<>> ids_;
  std::array<TokenId, 256> of_byte_{};
  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace infty
