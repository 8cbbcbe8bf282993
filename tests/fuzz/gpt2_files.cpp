// SPDX-License-Identifier: MIT
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <infty/model/gpt2_files.hpp>

#include "fuzz/fuzz.hpp"
#include "io/temporary_folder.hpp"

// Any bytes as config.json, an index of shards and a shard, zero bytes between the first two and
// behind the second: a folder is refused, or read, and what is read can be written and read again.

namespace infty::fuzz {

void run(std::string_view bytes) {
  Input input(bytes);
  const tests::TemporaryFolder folder;
  tests::write_text(folder / "config.json", input.part());
  const auto index = input.part();
  if (!index.empty()) tests::write_text(folder / "model.safetensors.index.json", index);
  tests::write_text(folder / (index.empty() ? "model.safetensors" : "one"), input.rest());
  using Model = Gpt2<CausalAttention<float>>;
  std::vector<Model> read;
  if (!accepted([&] { read.push_back(load_gpt2<CausalAttention<float>>(folder.path())); })) return;
  const tests::TemporaryFolder again;
  check(accepted([&] { save_gpt2(again.path(), read.front()); }), "what was read can be written");
  check(accepted([&] { load_gpt2<CausalAttention<float>>(again.path()); }), "and read again");
}

std::vector<std::string> seeds() {
  const tests::TemporaryFolder folder;
  const Gpt2Config config{
      .vocabulary = 2, .places = 1, .model_dim = 1, .layers = 1, .heads = 1, .feed_forward = 1};
  save_gpt2(folder.path(), Gpt2<CausalAttention<float>>(config));
  const std::string json = tests::read_text(folder / "config.json"),
                    weights = tests::read_text(folder / "model.safetensors");
  const auto one = [](std::string a, std::string_view b, std::string_view c) {
    return (a += '\0').append(b).append(1, '\0').append(c);
  };
  std::string index = R"({"metadata": {}, "weight_map": {)";
  for (const auto& name : SafetensorsFile(folder / "model.safetensors").names())
    index += (index.back() == '{' ? "\"" : ", \"") + name + "\": \"one\"";
  return {one(json, "", weights), one(json, index + "}}", weights),
          one(json, R"({"weight_map": {"a": "../one"}})", weights), one("{}", "", weights)};
}

}  // namespace infty::fuzz
