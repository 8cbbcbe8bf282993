// SPDX-License-Identifier: MIT
#include <string>
#include <string_view>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/data/byte_pair_encoding.hpp>
#include <infty/data/vocabulary.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/io/safetensors.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "threads/at_once.hpp"

using infty::SafetensorsFile;
using infty::Shape;
using infty::tests::same_at_once;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;

TEST_CASE("threads: tensors of one file are read, and files saved under one name") {
  const TemporaryFolder folder;
  const auto save = [&](float value) {
    infty::SafetensorsWriter writer;
    const std::vector<float> values(5000, value);
    writer.add("x", Shape{5000}, values);
    writer.add("y", Shape{2}, std::vector<double>{1, 2});
    writer.metadata("key", "value");
    writer.save(folder / "a");
  };
  save(1);
  const SafetensorsFile file(folder / "a");
  CHECK(same_at_once([&](int i) {
    double sum = 0;
    for (int n = 0; n < 10; ++n) {
      sum += file.read<double>("x")[static_cast<std::size_t>(n)] + file.read<float>("y")[1];
      sum += file.tensor<float, infty::EigenBackend>("x").to_vector().back();
      sum += static_cast<double>(file.metadata("key").size() + file.names().size());
      save(static_cast<float>(i));
      if (const float x = SafetensorsFile(folder / "a").read<float>("x").back(); x < 0 || x > 3)
        throw infty::Error("a file is of two threads");
    }
    return sum;
  }));
}

TEST_CASE("threads: one encoding and one vocabulary encode many texts") {
  const TemporaryFolder folder;
  write_text(folder / "e", R"({"a":0,"b":1,"ab":2,"Ġ":3,"Ġa":4,"aba":5})");
  write_text(folder / "v", "a b\nĠ a\nab a\n");
  const infty::BytePairEncoding encoding(folder / "e", folder / "v");
  infty::TokenCounts counts;
  counts.add_text("ab a ba", infty::TextUnit::word);
  const infty::Vocabulary vocabulary(counts);
  CHECK(same_at_once([&](int i) {
    std::string text;
    infty::Random random(static_cast<std::uint64_t>(i));
    for (int n = 0; n < 300; ++n) text += "ab "[random.below(3)];
    const infty::BytePairEncoding own(folder / "e", folder / "v");
    auto all = encoding.encode(text);
    if (own.encode(text) != all || encoding.decode(all) != text) all.clear();
    for (const auto id : vocabulary.encode(text, infty::TextUnit::word)) all.push_back(id);
    return all;
  }));
}
