// SPDX-License-Identifier: MIT
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <infty/data/byte_pair_encoding.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

namespace tokenizer_json {

using Catch::Matchers::Contains;
using infty::BytePairEncoding;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;
using Ids = std::vector<infty::TokenId>;

const std::filesystem::path vocabularies = std::filesystem::path(INFTY_TEST_DATA) / "golden/gpt2";

/// GPT-2's files as one, with a token more.
std::string whole(bool pairs) {
  std::string vocab = infty::tests::read_text(vocabularies / "encoder.json"), merges;
  const std::string list = infty::tests::read_text(vocabularies / "vocab.bpe");
  for (std::size_t at = list.find('\n') + 1; at < list.size();) {
    const std::size_t end = list.find('\n', at);
    const std::string line = list.substr(at, end - at);
    at = end == list.npos ? list.size() : end + 1;
    if (line.empty()) continue;
    const std::size_t space = line.find(' ');
    merges += merges.empty() ? "" : ",";
    merges += pairs ? '[' + infty::detail::to_json(line.substr(0, space)) + ", " +
                          infty::detail::to_json(line.substr(space + 1)) + ']'
                    : infty::detail::to_json(line);
  }
  return R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [
    {"id": 50256, "content": "<|endoftext|>", "single_word": false, "special": true},
    {"id": 50257, "content": "<doc é>", "special": true}], "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
    "end_of_word_suffix": "", "fuse_unk": false, "merges": [)" +
         merges + R"(], "vocab": )" + vocab + "}}";
}

}  // namespace tokenizer_json

using namespace tokenizer_json;

TEST_CASE("BytePairEncoding: a tokenizer.json encodes as the two files do") {
  const bool pairs = GENERATE(true, false);
  const TemporaryFolder folder;
  write_text(folder / "tokenizer.json", whole(pairs));
  const auto encoding = BytePairEncoding::from_folder(folder.path());
  const auto files = BytePairEncoding::from_folder(vocabularies);
  for (const std::string_view text : {"Hello, world!", " SolidGoldMagikarp\n\n", "the brown fox"})
    CHECK(encoding.encode(text) == files.encode(text));
  CHECK(encoding.find("<|endoftext|>") == 50256);
  CHECK(encoding.find("<doc é>") == 50257);
  CHECK(encoding.decode(Ids{50257, 262}) == "<doc é> the");
  CHECK(encoding.size() == 50258);
}

TEST_CASE("BytePairEncoding: the files of a folder by their names") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(BytePairEncoding::from_folder(folder.path()), Contains("vocab.json"));
  write_text(folder / "vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  write_text(folder / "merges.txt", "#version: 0.2\na b\n");
  CHECK(BytePairEncoding::from_folder(folder.path()).encode("abb") == Ids{2, 1});
  write_text(folder / "merges.txt", "a b\na b\n");
  CHECK_THROWS_WITH(BytePairEncoding::from_folder(folder.path()),
                    Contains("merges.txt: line 2: 'a b' has come before"));
}

TEST_CASE("BytePairEncoding: a tokenizer.json of another kind is refused by name") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& model, const std::string& more, const char* why) {
    write_text(folder / "tokenizer.json", "{" + more + R"("model": {)" + model + "}}");
    const auto read = [&] { BytePairEncoding::from_tokenizer_json(folder / "tokenizer.json"); };
    CHECK_THROWS_AS(read(), infty::IoError);
    CHECK_THROWS_WITH(read(), Contains(why) && Contains("tokenizer.json"));
  };
  const std::string lists = R"("vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"])";
  const std::string cut = R"("pre_tokenizer": {"type": "ByteLevel"},)";
  refused(R"("type": "WordPiece",)" + lists, cut, "model.type is '\"WordPiece\"'");
  refused(R"("byte_fallback": true,)" + lists, cut, "model.byte_fallback is 'true'");
  refused(R"("dropout": 0.1,)" + lists, cut, "model.dropout is '0.1'");
  refused(R"("end_of_word_suffix": "</w>",)" + lists, cut, "model.end_of_word_suffix");
  refused(lists, R"("normalizer": {"type": "NFC"},)", "normalizer is");
  refused(lists, R"("pre_tokenizer": null,)", "pre_tokenizer is 'null'");
  refused(lists, "", "there is no pre_tokenizer of a type");
  refused(lists, R"("pre_tokenizer": {"use_regex": true},)", "there is no pre_tokenizer of a type");
  refused(lists, R"("pre_tokenizer": {"type": null},)", "there is no pre_tokenizer of a type");
  refused(lists, R"("pre_tokenizer": {"type": "Metaspace"},)", "pre_tokenizer.type is");
  refused(lists, R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true},)",
          "pre_tokenizer.add_prefix_space is 'true'");
  refused(lists, cut + R"("added_tokens": [{"id": 7}],)", "lacks its id or content");
  refused(lists, cut + R"("added_tokens": [{"id": 7, "content": "ab"}],)", "'ab' is repeated");
  refused(lists, cut + R"("added_tokens": [{"id": 2, "content": "x"}],)",
          "two tokens have the number 2");
  refused(lists, cut + R"("added_tokens": [{"id": 4294967297, "content": "b"}],)",
          "'b' is repeated");
  refused(lists, cut + R"("added_tokens": [{"id": 9000, "content": "x"}],)", "must be below 256");
  refused(R"("vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b", "a b"])", cut,
          "merge 2: 'a b' has come before");
  refused(R"("vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a"]])", cut, "less than two");
  refused(R"("vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a  b"])", cut, "not two symbols");
  refused(R"("vocab": {"a": 0}, "merges": ["a b"])", cut, "merge 1: 'b' is no token");
  refused(R"("merges": [])", cut, "there is no token");
  write_text(folder / "tokenizer.json", "{}");
  CHECK_THROWS_WITH(BytePairEncoding::from_folder(folder.path()), Contains("there is no model"));
}
