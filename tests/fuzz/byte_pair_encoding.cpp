// SPDX-License-Identifier: MIT
#include <string>
#include <string_view>
#include <vector>

#include <infty/data/byte_pair_encoding.hpp>

#include "fuzz/fuzz.hpp"

// Any bytes as encoder.json, vocab.bpe and a text, zero bytes between them: files are refused or
// read, and what they encode comes back.

namespace infty::fuzz {

void run(std::string_view bytes) {
  Input input(bytes);
  const MemoryFile tokens(input.part()), merges(input.part());
  const auto text = input.rest();
  accepted([&] {
    const BytePairEncoding encoding(tokens.path(), merges.path());
    for (Index id = 0; id < std::min<Index>(encoding.size(), 1000); ++id)
      accepted([&] { check(encoding.find(encoding.token(id)) == id, "a token has its number"); });
    const auto ids = encoding.encode(text);
    check(ids.size() <= text.size(), "no token is empty");
    check(encoding.decode(ids) == text, "the text comes back");
  });
}

std::vector<std::string> seeds() {
  const auto one = [](std::string tokens, std::string_view merges, std::string_view text) {
    return (tokens += '\0').append(merges).append(1, '\0').append(text);
  };
  const std::string letters = R"({"a":0,"b":1,"c":2,"bc":3,"abc":4,"abcabc":5,"ab":6,"aa":7})";
  return {one(letters, "#version: 0.2\nb c\nabc abc\na b\nab c\na a\n", "aaaaabcabcab"),
          one(letters, "abc abc\na b\nab c\na a\n", "abcabcabc"),
          one(R"({"a": 0, "Ġ": 1, "Ġa": 12, "Ã": 3, "©": 4, "Ã©": 5})", "Ġ a\r\nÃ ©\n",
              " a\xC3\xA9 aa"),
          one(R"({"a": 0, "a": 1})", "a a\n", "a"), one(R"({"a": 4000000000})", "", "a")};
}

}  // namespace infty::fuzz
