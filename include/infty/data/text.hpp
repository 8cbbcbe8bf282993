// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/io/json.hpp>

namespace infty {

/// What one token of a text is.
enum class TextUnit {
  word,       ///< what stands between spaces and line ends, and the end of each line
  character,  ///< a UTF-8 sequence, or a byte that belongs to none
  byte,
};

/// The token that stands for the end of a line, at the level of words.
inline constexpr std::string_view end_of_line = "<eos>";
/// The token that stands for all words that a vocabulary does not have.
inline constexpr std::string_view unknown_word = "<unk>";

namespace detail {

inline bool is_space_in_line(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

template <class F>
void for_each_word(std::string_view text, F&& f) {
  std::size_t at = 0;
  bool in_line = false;  // something stands in front of the next line end
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n') {
      f(end_of_line);
      in_line = false;
      ++at;
      continue;
    }
    in_line = true;
    std::size_t end = at + 1;
    if (!is_space_in_line(c)) {
      while (end < text.size() && text[end] != '\n' && !is_space_in_line(text[end])) ++end;
      f(text.substr(at, end - at));
    }
    at = end;
  }
  if (in_line) f(end_of_line);
}

}  // namespace detail

/// Calls f(std::string_view token) for all tokens of a text in their order.
///
/// At the level of words these are the words of every line, then `end_of_line`; a last line without
/// a line break is a line, too, so that a text that is not empty has at least one token. This is
/// how the words of WikiText are counted. No token is made of spaces, and any bytes are a text.
/// @post  characters and bytes, one behind the other, are the text
template <class F>
void for_each_token(std::string_view text, TextUnit unit, F&& f) {
  if (unit == TextUnit::word) return detail::for_each_word(text, f);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 1;
    if (unit == TextUnit::character && static_cast<unsigned char>(text[at]) >= 0x80)
      length = std::max<std::size_t>(1, detail::utf8_sequence(text.substr(at)));
    f(text.substr(at, length));
    at += length;
  }
}

/// Counts the characters of a text: its UTF-8 sequences and the bytes that belong to none.
inline Index count_characters(std::string_view text) {
  Index count = 0;
  for_each_token(text, TextUnit::character, [&](std::string_view) { ++count; });
  return count;
}

/// Lists the files of a text: a file itself; of a folder all its regular files, in the order of
/// their names' bytes, but for hidden ones.
/// @throws infty::IoError if there is no such file or folder, or if the folder has no file
inline std::vector<std::filesystem::path> text_files(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    require<IoError>(std::filesystem::exists(path, error), "text_files", path.string(),
                     ": no such file or folder");
    return {path};
  }
  std::vector<std::filesystem::path> files;
  std::filesystem::directory_iterator entries(path, error);
  if (!error)
    for (const auto& entry : entries)
      if (entry.is_regular_file(error) && !entry.path().filename().string().starts_with('.'))
        files.push_back(entry.path());
  require<IoError>(!files.empty(), "text_files", path.string(), ": the folder has no file");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace infty
