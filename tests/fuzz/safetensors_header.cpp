// SPDX-License-Identifier: MIT
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/io/safetensors_header.hpp>

#include "fuzz/fuzz.hpp"

// Any bytes as the header of a file of any size: what is taken is JSON, and its tensors are a
// partition of the data.

namespace infty::fuzz {

void run(std::string_view bytes) {
  Input input(bytes);
  const auto data_bytes = input.raw<std::uint64_t>();
  const auto text = input.rest();
  SafetensorsHeader header;
  if (!accepted([&] { header = parse_safetensors_header(text, data_bytes, "fuzz"); })) return;
  std::uint64_t sum = 0;
  for (const auto& [name, entry] : header.tensors) {
    check(entry.begin <= entry.end && entry.end <= data_bytes, "a tensor lies in the data");
    const std::uint64_t length = entry.end - entry.begin;
    const auto width = static_cast<std::uint64_t>(dtype_bytes(entry.dtype));
    check(length % width == 0 && length / width == static_cast<std::uint64_t>(entry.shape.size()),
          "a tensor is as long as its shape says");
    sum += length;
    for (const auto& [other, next] : header.tensors)
      check(name == other || entry.begin == entry.end || entry.end <= next.begin ||
                next.end <= entry.begin,
            "no byte is of two tensors");
  }
  check(sum == data_bytes, "the tensors fill the data");
  const auto json = nlohmann::json::parse(text);
  check(json.size() == header.tensors.size() + (json.contains("__metadata__") ? 1 : 0),
        "every name is there once");
  for (const auto& [key, value] : header.metadata)
    check(json["__metadata__"][key] == value, "metadata is as it is written");
}

std::vector<std::string> seeds() {
  const auto one = [](std::uint64_t data_bytes, const std::string& text) {
    return bytes_of(data_bytes) + text;
  };
  return {one(0, "{}"),
          one(0, R"({"__metadata__":{"a":"b","c":""}})"),
          one(28, R"({"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                  R"("y":{"dtype":"F16","shape":[2],"data_offsets":[24,28]}}   )"),
          one(8, R"({"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                 R"("b":{"dtype":"BOOL","shape":[7,0],"data_offsets":[8,8]}})"),
          one(std::uint64_t{1} << 62U, R"({"a":{"dtype":"U8","shape":[4611686018427387904],)"
                                       R"("data_offsets":[0,4611686018427387904]}})"),
          one(8, R"({"a":{"dtype":"F64","shape":[1,1,1,1,1,1,1],"data_offsets":[0,8]}})")};
}

}  // namespace infty::fuzz
