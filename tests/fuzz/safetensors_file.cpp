// SPDX-License-Identifier: MIT
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <infty/io/safetensors.hpp>

#include "fuzz/fuzz.hpp"
#include "io/temporary_folder.hpp"

// Any bytes as a safetensors file: it is refused, or every tensor of it can be read, or refused, as
// every type, and comes back from a file that was written anew.

namespace infty::fuzz {

namespace {

template <class T>
void read_as(const SafetensorsFile& file, const std::string& name) {
  accepted([&] {
    const auto values = file.read<T>(name);
    check(static_cast<Index>(values.size()) == file.shape(name).size(), "all elements are read");
  });
}

}  // namespace

void run(std::string_view bytes) {
  const MemoryFile stored(bytes);
  accepted([&] {
    const SafetensorsFile file(stored.path());
    SafetensorsWriter writer;
    for (const auto& [key, value] : file.metadata()) writer.metadata(key, value);
    for (const auto& [name, entry] : file.tensors()) {
      read_as<float>(file, name);
      read_as<double>(file, name);
      read_as<std::int64_t>(file, name);
      read_as<std::uint8_t>(file, name);
      writer.add_bytes(name, entry.dtype, entry.shape, file.read_bytes(name));
    }
    const tests::TemporaryFolder folder;
    check(accepted([&] { writer.save(folder / "a"); }), "what was read can be written");
    const SafetensorsFile again(folder / "a");
    check(again.metadata() == file.metadata(), "metadata comes back");
    check(again.names() == file.names(), "names come back");
    for (const auto& [name, entry] : file.tensors()) {
      check(again.dtype(name) == entry.dtype && again.shape(name) == entry.shape,
            "types and shapes come back");
      check(again.read_bytes(name) == file.read_bytes(name), "bytes come back");
    }
  });
}

std::vector<std::string> seeds() {
  using tests::safetensors_bytes;
  return {safetensors_bytes("{}"),
          safetensors_bytes(R"({"__metadata__":{"k":"v"},)"
                            R"("x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                            R"("y":{"dtype":"F16","shape":[2],"data_offsets":[8,12]},)"
                            R"("z":{"dtype":"BOOL","shape":[1],"data_offsets":[12,13]}})",
                            "\x01\x02\x03\x04zzzz\x01\x3C\xFF\x7C\x01"),
          safetensors_bytes(R"({"a":{"dtype":"U64","shape":[1],"data_offsets":[0,8]},)"
                            R"("b":{"dtype":"F64","shape":[1,1],"data_offsets":[8,16]},)"
                            R"("c":{"dtype":"BF16","shape":[0,3],"data_offsets":[16,16]}})",
                            "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF-234567\x7F")};
}

}  // namespace infty::fuzz
