// SPDX-License-Identifier: MIT
#include <string>
#include <string_view>
#include <vector>

#include <infty/data/byte_pair_encoding.hpp>

#include "fuzz/fuzz.hpp"

// Any bytes as tokenizer.json and a text, a zero byte between them: the file is refused or read,
// and what it encodes comes back.

namespace infty::fuzz {

void run(std::string_view bytes) {
  Input input(bytes);
  const MemoryFile file(input.part());
  const auto text = input.rest();
  accepted([&] {
    const auto encoding = BytePairEncoding::from_tokenizer_json(file.path());
    for (Index id = 0; id < std::min<Index>(encoding.size(), 1000); ++id)
      accepted([&] { check(encoding.find(encoding.token(id)) == id, "a token has its number"); });
    const auto ids = encoding.encode(text);
    check(encoding.decode(ids) == text, "the text comes back");
  });
}

std::vector<std::string> seeds() {
  const std::string model =
      R"("model": {"type": "BPE", "dropout": null, "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3},)";
  const auto one = [](std::string json, std::string_view text) {
    return (json += '\0').append(text);
  };
  return {one('{' + model + R"( "merges": ["a b"]}})", "abba ab"),
          one('{' + model + R"( "merges": [["a", "b"]]}})", "ab"),
          one(R"({"added_tokens": [{"id": 9, "content": "<x>"}], "normalizer": null,
                  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},)" +
                  model + R"( "merges": []}})",
              "a b")};
}

}  // namespace infty::fuzz
