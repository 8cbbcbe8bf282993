// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/data/byte_pair_encoding.hpp>

#include "fuzz/fuzz.hpp"

// Any bytes as a text for a fixed vocabulary: it comes back, and its tokens are those that merging
// pair by pair makes, as the authors' program does.

namespace infty::fuzz {

namespace {

using Pieces = std::vector<std::string>;

const std::vector<std::pair<std::string, std::string>>& merges() {
  static const std::vector<std::pair<std::string, std::string>> list{
      {" ", "a"}, {"a", "b"},  {"ab", "ab"},     {"a", "a"}, {"aa", "a"},  {"b", "c"},
      {"1", "1"}, {"\n", " "}, {"\xC3", "\xA9"}, {"'", "s"}, {" a", "b"},  {"c", "c"},
      {"!", "!"}, {" ", " "},  {"11", "11"},     {"x", "x"}, {"bc", "bc"}, {"c", "ab"}};
  return list;
}

/// A vocabulary of all bytes and of what the merges make, in files as GPT-2's.
BytePairEncoding make_encoding() {
  const auto written = [](std::string_view bytes) {
    std::string out;
    for (const char c : bytes) {
      const auto symbol = detail::gpt2_byte_symbols()[static_cast<unsigned char>(c)];
      if (symbol >= 0x80) out += static_cast<char>(0xC0U | (symbol >> 6U));
      out += static_cast<char>(symbol < 0x80 ? symbol : 0x80U | (symbol & 0x3FU));
    }
    return out;
  };
  std::string tokens = "{", lines;
  int id = 0;
  const auto add = [&](std::string_view bytes) {
    tokens += (id > 0 ? "," : "") + detail::to_json(written(bytes)) + ':' + std::to_string(id);
    ++id;
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
  for (const auto& [left, right] : merges()) {
    add(left + right);
    lines += written(left) + ' ' + written(right) + '\n';
  }
  return {MemoryFile(tokens + '}').path(), MemoryFile(lines).path()};
}

/// A piece, merged by the first pair of the list that it has, everywhere, until it has none.
void merge(Pieces& parts) {
  for (;;) {
    auto best = merges().end();
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      best = std::min(
          best, std::find(merges().begin(), merges().end(), std::pair(parts[i], parts[i + 1])));
    if (best == merges().end()) return;
    Pieces next;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      next.push_back(parts[i]);
      if (i + 1 < parts.size() && std::pair(parts[i], parts[i + 1]) == *best)
        next.back() += parts[++i];
    }
    parts = next;
  }
}

}  // namespace

void run(std::string_view bytes) {
  static const BytePairEncoding encoding = make_encoding();
  const auto ids = encoding.encode(bytes);
  check(encoding.decode(ids) == bytes, "the text comes back");
  Pieces expected;
  for (std::string_view rest = bytes; !rest.empty();) {
    const std::size_t length = detail::gpt2_piece(rest);
    check(length > 0 && length <= rest.size(), "a piece is a part of the text");
    Pieces parts;
    for (const char c : rest.substr(0, length)) parts.emplace_back(1, c);
    merge(parts);
    expected.insert(expected.end(), parts.begin(), parts.end());
    rest.remove_prefix(length);
  }
  check(ids.size() == expected.size(), "there are as many tokens as merging makes");
  for (std::size_t i = 0; i < ids.size(); ++i)
    check(encoding.token(ids[i]) == expected[i], "tokens are those that merging makes");
}

std::vector<std::string> seeds() {
  using namespace std::string_literals;
  return {"abab aaaa a abcbc's\n  11111 !!! x", "caf\xC3\xA9  \xE2\x80\x83 9\xC2\xB2 'll've",
          "\0\xFF\xC3 \t\r\n"s, "aabcabccab    abab", "aaaaaaabbbbcccc'd're"};
}

}  // namespace infty::fuzz
