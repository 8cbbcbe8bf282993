// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/moved.hpp>
#include <infty/data/text.hpp>
#include <infty/io/file.hpp>
#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>

namespace infty {

/// A token's number, in [0, size of the vocabulary).
using TokenId = std::int32_t;

namespace detail {

/// Lets a map of strings be searched by a view of one.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

/// Whether a byte is a space or one of ASCII's control characters.
inline bool is_blank_or_control(unsigned char byte) { return byte <= ' ' || byte == 0x7F; }

/// A word as the line of a file: spaces, backslashes, ASCII's control characters and bytes that are
/// no UTF-8 as \xHH.
inline std::string escaped(std::string_view word) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string out;
  while (!word.empty()) {
    const std::size_t length = utf8_sequence(word);
    const auto byte = static_cast<unsigned char>(word.front());
    if (length == 0 || byte == '\\' || is_blank_or_control(byte)) {
      out += "\\x";
      out += hex[byte >> 4U];
      out += hex[byte & 15U];
      word.remove_prefix(1);
    } else {
      out += word.substr(0, length);
      word.remove_prefix(length);
    }
  }
  return out;
}

/// The word of which `escaped` made this; empty if none.
inline std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.front() != '\\') {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    unsigned value = 0;
    if (text.size() < 4 || text[1] != 'x') return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 4, value, 16);
    if (error != std::errc() || end != text.data() + 4) return std::nullopt;
    out += static_cast<char>(static_cast<unsigned char>(value));
    text.remove_prefix(4);
  }
  return out;
}

}  // namespace detail

/// How often each token occurs in the texts that were counted.
class TokenCounts {
 public:
  /// Counts by token.
  using Map = std::unordered_map<std::string, Index, detail::StringHash, std::equal_to<>>;

  /// Adds all tokens of a text.
  void add_text(std::string_view text, TextUnit unit) {
    if (unit == TextUnit::word)
      return for_each_token(text, unit, [this](std::string_view token) { add(token); });
    // Most tokens at the levels of bytes and characters are a byte.
    std::array<Index, 256> times{};
    for_each_token(text, unit, [&](std::string_view token) {
      if (token.size() == 1)
        ++times[static_cast<unsigned char>(token.front())];
      else
        add(token);
    });
    for (std::size_t byte = 0; byte < times.size(); ++byte)
      if (times[byte] > 0) add(std::string(1, static_cast<char>(byte)), times[byte]);
  }

  /// Adds a token, `times` over.
  /// @throws infty::ValueError for a token of no byte, if times < 0, or where the total would be no
  /// Index
  void add(std::string_view token, Index times = 1) {
    require(!token.empty(), "TokenCounts::add", "the token is empty");
    require_at_least("TokenCounts::add", "times", times, 0);
    const auto sum = checked_add(total(), times);
    require(sum.has_value(), "TokenCounts::add", "times is ", times, ": there are ", total(),
            " tokens already, and no Index counts them all");
    const auto at = counts_.find(token);
    if (at == counts_.end())
      counts_.emplace(token, times);
    else
      at->second += times;
    total_ = *sum;
  }

  /// Counts the tokens, each as often as it occurred.
  Index total() const { return total_; }
  /// Returns all different tokens, in no order.
  const Map& map() const { return counts_; }

 private:
  Map counts_;
  detail::ZeroWhenMoved<Index> total_;
};

/// Which of the counted tokens a vocabulary takes.
struct VocabularyConfig {
  Index min_count = 1;  ///< tokens that occur less often are left out
  Index max_size = 0;   ///< at most so many, `unknown_word` among them; 0: any number
  /// Whether `unknown_word` stands for tokens that are not in the vocabulary. It is in it then, and
  /// counts what was left out.
  bool unknown = true;
};

/// Different tokens with their counts, numbered by falling count, equal ones by their bytes.
class Vocabulary {
 public:
  /// No token.
  Vocabulary() = default;

  /// Takes the tokens that occur often enough, the most frequent first.
  /// @throws infty::ValueError if min_count < 1 or max_size < 0
  explicit Vocabulary(const TokenCounts& counts, const VocabularyConfig& config = {}) {
    require_at_least("Vocabulary", "min_count", config.min_count, 1);
    require_at_least("Vocabulary", "max_size", config.max_size, 0);
    std::vector<Entry> entries;
    Index left_out = 0;
    for (const auto& [token, count] : counts.map()) {
      if (config.unknown && token == unknown_word)
        left_out += count;
      else if (count >= config.min_count)
        entries.push_back({token, count});
      else
        left_out += count;
    }
    std::sort(entries.begin(), entries.end(), comes_first);
    const auto most = static_cast<std::size_t>(config.max_size - (config.unknown ? 1 : 0));
    if (config.max_size > 0 && entries.size() > most) {
      for (std::size_t i = most; i < entries.size(); ++i) left_out += entries[i].count;
      entries.resize(most);
    }
    if (config.unknown) {
      Entry unknown{std::string(unknown_word), left_out};
      entries.insert(std::upper_bound(entries.begin(), entries.end(), unknown, comes_first),
                     std::move(unknown));
    }
    for (Entry& entry : entries) append(std::move(entry));
  }

  /// Number of tokens.
  Index size() const { return static_cast<Index>(entries_.size()); }

  /// Returns the token of a number. @throws infty::ValueError if there is none
  const std::string& token(Index id) const { return entry(id).token; }
  /// Returns how often a token was counted. @throws infty::ValueError if there is none of this
  /// number
  Index count(Index id) const { return entry(id).count; }

  /// Finds the number of a token, if it is there.
  std::optional<TokenId> find(std::string_view token) const {
    const auto at = ids_.find(token);
    return at == ids_.end() ? std::nullopt : std::optional(at->second);
  }

  /// Encodes a text by the numbers of its tokens; `unknown_word` for what is not in the vocabulary.
  /// @throws infty::ValueError that names the first such token if `unknown_word` is not there
  std::vector<TokenId> encode(std::string_view text, TextUnit unit) const {
    // Most tokens at the levels of bytes and characters are a byte.
    std::array<TokenId, 256> of_byte;
    for (std::size_t byte = 0; byte < of_byte.size(); ++byte)
      of_byte[byte] = find(std::string(1, static_cast<char>(byte))).value_or(-1);
    const TokenId unknown = find(unknown_word).value_or(-1);
    std::vector<TokenId> out;
    if (unit != TextUnit::word) out.reserve(text.size());
    for_each_token(text, unit, [&](std::string_view token) {
      TokenId id = token.size() == 1 ? of_byte[static_cast<unsigned char>(token.front())]
                                     : find(token).value_or(-1);
      if (id < 0) id = unknown;
      if (id < 0) fail_unknown(text, token);
      out.push_back(id);
    });
    return out;
  }

  /// Decodes tokens to their text. Words come in WikiText's format, a space in front of each and
  /// one in front of each line's end: so a text in that format, of words in the vocabulary, comes
  /// back, but for a word that is written as the line's end is called.
  /// @throws infty::ValueError for a number of no token
  std::string decode(std::span<const TokenId> ids, TextUnit unit) const {
    std::string out;
    for (const TokenId id : ids) {
      const std::string& token = this->token(id);
      if (unit == TextUnit::word) out += ' ';
      if (unit == TextUnit::word && token == end_of_line)
        out += '\n';
      else
        out += token;
    }
    return out;
  }

  /// Writes a line for each token in their order: count, tab, token, of which spaces, backslashes,
  /// ASCII's control characters and bytes that are no UTF-8 are written as `\xHH`. The file
  /// replaces an old one when it is complete.
  /// @throws infty::IoError such as for a missing folder
  void save(const std::filesystem::path& path) const {
    std::string text;
    for (const Entry& entry : entries_)
      text += std::to_string(entry.count) + '\t' + detail::escaped(entry.token) + '\n';
    detail::ReplacingFile file(path);
    file.write(text.data(), text.size());
    file.commit();
  }

  /// Reads what `save` has written. The order is the file's.
  /// @throws infty::IoError that names the first line that is not as it must be
  static Vocabulary load(const std::filesystem::path& path) {
    const MappedFile file(path);
    const std::string where = path.string();
    std::string_view text = file.text();
    Vocabulary out;
    for (Index number = 1; !text.empty(); ++number) {
      const auto check = [&](bool ok, const char* what) {
        require<IoError>(ok, "Vocabulary::load", where, ": line ", number, ": ", what);
      };
      const std::size_t end = text.find('\n');
      check(end != std::string_view::npos, "it does not end");
      const std::string_view line = text.substr(0, end);
      const std::size_t tab = line.find('\t');
      check(tab != std::string_view::npos, "there is no tab behind a count");
      Index count = 0;
      const auto [stop, error] = std::from_chars(line.data(), line.data() + tab, count);
      check(error == std::errc() && stop == line.data() + tab && count >= 0, "that is no count");
      const std::string_view written = line.substr(tab + 1);
      check(std::ranges::none_of(written, detail::is_blank_or_control),
            "a space or a control character, as at the end of a line with \\r\\n, must be \\xHH");
      auto token = detail::unescaped(written);
      check(token.has_value(), "a backslash is not followed by x and two hexadecimal digits");
      check(!token->empty(), "the token is empty");
      check(!out.find(*token), "the token has come before");
      out.append({std::move(*token), count});
      text.remove_prefix(end + 1);
    }
    return out;
  }

 private:
  /// Names what is not in the vocabulary; of a byte that shows nothing by itself, its character.
  [[noreturn]] void fail_unknown(std::string_view text, std::string_view token) const {
    std::string_view character = token;
    if (token.size() == 1)  // which lies in the text, as the end of a line does not
      character = detail::character_at(text, static_cast<std::size_t>(token.data() - text.data()));
    const bool part = character.size() > token.size();
    raise<ValueError>("Vocabulary::encode", part ? "byte " + detail::escaped(token) + " of " : "",
                      detail::printable(character), " is none of the ", size(),
                      " tokens, and neither is ", unknown_word);
  }

  struct Entry {
    std::string token;
    Index count;
  };

  static bool comes_first(const Entry& a, const Entry& b) {
    return a.count != b.count ? a.count > b.count : a.token < b.token;
  }

  void append(Entry entry) {
    require(entries_.size() < static_cast<std::size_t>((std::numeric_limits<TokenId>::max)()),
            "Vocabulary", "there are too many tokens");
    ids_.emplace(entry.token, static_cast<TokenId>(entries_.size()));
    entries_.push_back(std::move(entry));
  }

  const Entry& entry(Index id) const {
    require(id >= 0 && id < size(), "Vocabulary", "the token ", id, " does not lie in [0, ", size(),
            ")");
    return entries_[static_cast<std::size_t>(id)];
  }

  std::vector<Entry> entries_;
  std::unordered_map<std::string, TokenId, detail::StringHash, std::equal_to<>> ids_;
};

}  // namespace infty
