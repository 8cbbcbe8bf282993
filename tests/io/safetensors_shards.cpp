// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
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

TEST_CASE("save_shards: what fails leaves the old model, all of it") {
  const TemporaryFolder folder;
  const auto save = [&](float value, bool fails, std::uint64_t most) {
    std::vector<infty::ShardedTensor> tensors;
    for (const std::string name : {"a", "b", "c"})
      tensors.push_back({name, 8, [=](SafetensorsWriter& writer) {
                           infty::require<IoError>(!fails || name != "b", "save", "disk full");
                           writer.add(name, Shape{2}, std::vector<float>{value, value});
                         }});
    infty::save_shards(folder.path(), "model", tensors, most);
  };
  const auto check_all = [&](float value) {
    const SafetensorsShards shards(folder.path());
    for (const std::string name : {"a", "b", "c"})
      CHECK(shards.file_of(name).read<float>(name) == std::vector<float>{value, value});
  };
  const auto files = [&] {
    std::size_t count = 0;
    for (std::filesystem::directory_iterator at(folder.path()), end; at != end; ++at) ++count;
    return count;
  };
  save(1, false, 8);
  for (const std::uint64_t most : {8U, 16U, 0U}) {
    CHECK_THROWS_WITH(save(2, true, most), Contains("disk full"));
    check_all(1);
    CHECK(files() == 4);
  }
  save(3, false, 8);
  check_all(3);
  CHECK(files() == 4);
  save(4, false, 16);
  check_all(4);
  CHECK(files() == 3);
  save(5, false, 0);
  check_all(5);
  CHECK(files() == 1);
}

TEST_CASE("save_shards: what would be read in the place of the shards must go") {
  const TemporaryFolder folder;
  const auto tensor = [](const std::string& name, float value) {
    return infty::ShardedTensor{name, 8, [=](SafetensorsWriter& writer) {
                                  writer.add(name, Shape{2}, std::vector<float>{value, value});
                                }};
  };
  const auto save = [&](float value) {
    infty::save_shards(folder.path(), "model", {tensor("a", value), tensor("b", value)}, 8);
  };
  const auto cannot_be_removed = [&](const std::string& name) {
    std::filesystem::create_directories(folder / name / "within");
    CHECK_THROWS_AS(save(2), IoError);
    CHECK_THROWS_WITH(save(2), Contains(name + ": "));
    std::filesystem::remove_all(folder / name);
  };
  save(1);
  cannot_be_removed("model.safetensors");
  std::filesystem::remove(folder / "model.safetensors.index.json");
  std::filesystem::remove(folder / "model-00001-of-00002.safetensors");
  cannot_be_removed("model.safetensors.index.json");
  // Of the new model nothing is there: its shards would have been written first.
  CHECK_FALSE(std::filesystem::exists(folder / "model-00001-of-00002.safetensors"));
}

TEST_CASE("save_shards: two tensors of one name are refused, in one file and in several") {
  const TemporaryFolder folder;
  const infty::ShardedTensor a{"a", 8, [](SafetensorsWriter& writer) {
                                 writer.add("a", Shape{2}, std::vector<float>{1, 2});
                               }};
  for (const std::uint64_t most : {0U, 8U})
    CHECK_THROWS_WITH(infty::save_shards(folder.path(), "model", {a, a}, most),
                      Contains("tensor 'a' is taken"));
  CHECK(std::filesystem::is_empty(folder.path()));
}
