// SPDX-License-Identifier: MIT
#include <filesystem>
#include <string>
#include <vector>

#include <infty/io/safetensors_shards.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

namespace safetensors_shards {

using Catch::Matchers::Contains;
using infty::IoError;
using infty::SafetensorsShards;
using infty::SafetensorsWriter;
using infty::Shape;
using infty::tests::read_text;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;

void write(const std::filesystem::path& path, const std::vector<std::string>& names) {
  SafetensorsWriter writer;
  for (const auto& name : names) writer.add(name, Shape{2}, std::vector<float>{1, 2});
  writer.save(path);
}

std::string index(const std::string& map) {
  return R"({"metadata": {"total_size": 16.5, "x": [null]}, "weight_map": {)" + map + "}}";
}

}  // namespace safetensors_shards

using namespace safetensors_shards;

TEST_CASE("SafetensorsShards: one file, or those that an index names") {
  const TemporaryFolder folder;
  write(folder / "one.safetensors", {"a", "b", "c"});
  write(folder / "two.safetensors", {"d"});
  write_text(folder / "model.safetensors.index.json",
             index(R"("a": "one.safetensors", "d": "two.safetensors", "b": "one.safetensors")"));
  const SafetensorsShards shards(folder.path());
  CHECK(shards.names() == std::vector<std::string>{"a", "b", "d"});
  CHECK(shards.file_of("d").path() == folder / "two.safetensors");
  CHECK_FALSE(shards.has("c"));  // which the index does not name
  CHECK_THROWS_WITH(shards.file_of("c"), Contains("index.json: no tensor 'c'"));
  write(folder / "model.safetensors", {"e"});
  CHECK(SafetensorsShards(folder.path()).names() == std::vector<std::string>{"e"});
  CHECK(SafetensorsShards(folder.path(), "two").has("d"));
  CHECK_THROWS_WITH(SafetensorsShards(folder.path(), "three"),
                    Contains("three.safetensors: No such file"));
}

TEST_CASE("SafetensorsShards: hostile indices are refused in words") {
  const TemporaryFolder outside;
  write(outside / "other.safetensors", {"a"});
  const TemporaryFolder folder;
  write(folder / "one.safetensors", {"a"});
  const auto refused = [&](const std::string& text, const std::string& why) {
    write_text(folder / "model.safetensors.index.json", text);
    CHECK_THROWS_AS(SafetensorsShards(folder.path()), IoError);
    CHECK_THROWS_WITH(SafetensorsShards(folder.path()), Contains(why));
  };
  refused(index(R"("a": ")" + (outside / "other.safetensors").string() + '"'),
          "which is no file of the folder");
  const std::string beside = outside.path().filename().string();
  refused(index(R"("a": "../)" + beside + R"(/other.safetensors")"), "is no file of the folder");
  refused(index(R"("a": "..")"), "is no file of the folder");
  refused(index(R"("a": "")"), "is no file of the folder");
  refused(index(R"("a": "one.safetensors\u0000")"), "is no file of the folder");
  refused(index(R"("a": "two.safetensors")"), "two.safetensors: No such file");
  refused(index(R"("b": "one.safetensors")"), "tensor 'b' is not in");
  refused(index(R"("a": "one.safetensors", "a": "one.safetensors")"), "tensor 'a' is repeated");
  refused(index(R"("a": 7)"), "expected a string");
  refused("{}", "there is no weight_map");
  refused(R"({"weight_map": {}, "weight_map": {}})", "weight_map is repeated");
  refused("", "expected an object");
  refused(index(R"("a": "one.safetensors")") + "x", "something follows");
  const std::string bytes = read_text(folder / "one.safetensors");
  write_text(folder / "one.safetensors", bytes.substr(0, bytes.size() - 3));
  refused(index(R"("a": "one.safetensors")"), "one.safetensors: tensor 'a'");
}
