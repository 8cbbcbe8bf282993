// SPDX-License-Identifier: MIT
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <random>
#include <string>
#include <vector>

#include <malloc.h>

#include <infty/eigen/backend.hpp>
#include <infty/io/safetensors.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

// Every allocation of this test program is counted, so that a file can be shown not to be believed.
namespace {
std::atomic<std::size_t> live_bytes{0}, peak_bytes{0};
}

void* operator new(std::size_t bytes) {
  void* const place = std::malloc(bytes > 0 ? bytes : 1);
  if (place == nullptr) throw std::bad_alloc();
  const std::size_t now = live_bytes += ::malloc_usable_size(place);
  for (std::size_t peak = peak_bytes; now > peak && !peak_bytes.compare_exchange_weak(peak, now);) {
  }
  return place;
}
void operator delete(void* place) noexcept {
  if (place != nullptr) live_bytes -= ::malloc_usable_size(place);
  std::free(place);
}
void operator delete(void* place, std::size_t) noexcept { operator delete(place); }
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (...) {
    return nullptr;
  }
}
void operator delete(void* place, const std::nothrow_t&) noexcept { operator delete(place); }
void operator delete[](void* place) noexcept { operator delete(place); }
void operator delete[](void* place, std::size_t) noexcept { operator delete(place); }

using infty::IoError;
using infty::SafetensorsFile;
using infty::SafetensorsWriter;
using infty::Shape;
using infty::tests::read_text;
using infty::tests::safetensors_bytes;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;

namespace {

// The most that is allocated at one time while f runs.
template <class F>
std::size_t peak_of(F&& f) {
  const std::size_t before = live_bytes;
  peak_bytes = before;
  f();
  return peak_bytes - before;
}

// A map's node for each entry makes the worst factor; messages and buffers do not grow with a file.
std::size_t allowance(const std::string& bytes) { return 20 * bytes.size() + 8192; }

struct Outcome {
  bool opened = false;
  std::size_t peak = 0;
};

// Opens a file of these bytes and reads all that is in it; anything but IoError fails the test.
Outcome open_and_read(const std::filesystem::path& path, const std::string& bytes) {
  write_text(path, bytes);
  Outcome outcome;
  outcome.peak = peak_of([&] {
    try {
      const SafetensorsFile file(path);
      outcome.opened = true;
      for (const auto& [name, entry] : file.tensors()) {
        file.read_bytes(name);
        if (infty::dtype_is_float(entry.dtype)) {
          file.read<double>(name);
        } else if (entry.dtype == infty::DType::U64) {
          file.read<std::uint64_t>(name);
        } else {
          file.read<std::int64_t>(name);
        }
      }
    } catch (const IoError&) {
    }
  });
  return outcome;
}

std::string small_file() {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  writer.add("weight", Shape{2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  writer.add("bias", Shape{2}, std::vector<double>{0.5, -1e300});
  writer.add("tokens", Shape{4}, std::vector<std::int64_t>{1, 2, 3, 4});
  writer.add("bytes", Shape{3}, std::vector<std::uint8_t>{7, 8, 9});
  writer.add("none", Shape{0, 4}, std::vector<std::int16_t>{});
  writer.metadata("caf\xC3\xA9", "\"\\\n");
  writer.save(folder / "a");
  return read_text(folder / "a");
}

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string out;
  for (unsigned i = 0; i < 8; ++i) out += static_cast<char>((length >> (8 * i)) & 0xFFU);
  return out + rest;
}

}  // namespace

TEST_CASE("hostile files: truncated at any byte, or longer by one") {
  const TemporaryFolder folder;
  const std::string whole = small_file();
  REQUIRE(open_and_read(folder / "a", whole).opened);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const std::string bytes = whole.substr(0, size);
    const Outcome outcome = open_and_read(folder / "a", bytes);
    REQUIRE_FALSE(outcome.opened);
    REQUIRE(outcome.peak <= allowance(bytes));
  }
  CHECK_FALSE(open_and_read(folder / "a", whole + '\0').opened);
}

TEST_CASE("hostile files: a header length that the file does not bear out costs nothing") {
  const TemporaryFolder folder;
  const std::string rest = "{}      ";
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{9}, std::uint64_t{99'999'999},
        std::uint64_t{100'000'001}, std::uint64_t{1} << 32U, std::uint64_t{1} << 62U,
        std::uint64_t{1} << 63U, ~std::uint64_t{0} - 15, ~std::uint64_t{0} - 7,
        ~std::uint64_t{0}}) {
    CAPTURE(length);
    const std::string bytes = with_length(length, rest);
    const Outcome outcome = open_and_read(folder / "a", bytes);
    CHECK_FALSE(outcome.opened);
    CHECK(outcome.peak <= allowance(bytes));
  }
  CHECK(open_and_read(folder / "a", with_length(8, rest)).opened);
}

TEST_CASE("hostile files: a header over the limit is not read, though the file has it") {
  const TemporaryFolder folder;
  const auto path = folder / "a";
  write_text(path, with_length(100'000'001, "{}"));
  std::filesystem::resize_file(path, 100'000'009);  // sparse: takes no room on the disk
  const std::size_t peak = peak_of([&] { CHECK_THROWS_AS(SafetensorsFile(path), IoError); });
  CHECK(peak <= 64 * 1024);
}

TEST_CASE("hostile files: claimed sizes are not allocated") {
  const TemporaryFolder folder;
  for (
      const std::string claim :
      {R"({"x":{"dtype":"F64","shape":[1000000000000],"data_offsets":[0,8000000000000]}})",
       R"({"x":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,8]}})",
       R"({"x":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})",
       R"({"x":{"dtype":"F64","shape":[2305843009213693953],"data_offsets":[0,8]}})",
       R"({"x":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}})",
       R"({"x":{"dtype":"U8","shape":[8],"data_offsets":[18446744073709551608,0]}})"}) {
    CAPTURE(claim);
    const std::string bytes = safetensors_bytes(claim, "12345678");
    const Outcome outcome = open_and_read(folder / "a", bytes);
    CHECK_FALSE(outcome.opened);
    CHECK(outcome.peak <= allowance(bytes));
  }
}

TEST_CASE("hostile files: many tiny entries take a small multiple of the file") {
  const TemporaryFolder folder;
  std::string metadata = R"({"__metadata__":{)", tensors = "{";
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = (i > 0 ? ",\"" : "\"") + std::to_string(i) + '"';
    metadata += key + ":\"\"";
    tensors += key + R"(:{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  for (const std::string& header : {metadata + "}}", tensors + "}"}) {
    const std::string bytes = safetensors_bytes(header);
    const Outcome outcome = open_and_read(folder / "a", bytes);
    CHECK(outcome.opened);
    CHECK(outcome.peak <= allowance(bytes));
  }
}

TEST_CASE("hostile files: deep nesting does not reach the stack") {
  const TemporaryFolder folder;
  for (const std::string& piece :
       {std::string(R"({"a":)"), std::string("["), std::string(R"({"__metadata__":)")}) {
    std::string header = "{\"x\":";
    while (header.size() < 1'000'000) header += piece;
    const std::string bytes = safetensors_bytes(header);
    const Outcome outcome = open_and_read(folder / "a", bytes);
    CHECK_FALSE(outcome.opened);
    CHECK(outcome.peak <= allowance(bytes));
  }
}

TEST_CASE("hostile files: a name as long as the file stays out of the message") {
  const TemporaryFolder folder;
  write_text(folder / "a", safetensors_bytes("{\"" + std::string(1'000'000, 'n') + "\":{}}"));
  try {
    const SafetensorsFile file(folder / "a");
    FAIL("opened");
  } catch (const IoError& error) {
    CHECK(std::string(error.what()).size() < 400);
  }
}

TEST_CASE("hostile files: random flips of bits are read or refused, never believed") {
  const TemporaryFolder folder;
  const std::string whole = small_file();
  std::mt19937_64 random(infty::tests::seed);
  int opened = 0, refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes = whole;
    for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      char& byte = bytes[random() % bytes.size()];
      byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1U << (random() % 8)));
    }
    const Outcome outcome = open_and_read(folder / "a", bytes);
    ++(outcome.opened ? opened : refused);
    if (outcome.peak > allowance(bytes)) FAIL("flip " << i << " made it allocate " << outcome.peak);
  }
  CHECK(opened > 500);
  CHECK(refused > 500);
}

TEST_CASE("hostile files: random bytes after a fitting length") {
  const TemporaryFolder folder;
  std::mt19937_64 random(infty::tests::seed + 1);
  for (int i = 0; i < 2'000; ++i) {
    std::string header = "{";
    while (random() % 60 != 0) header += static_cast<char>(random() % 256);
    const std::string bytes = safetensors_bytes(header);
    const Outcome outcome = open_and_read(folder / "a", bytes);
    REQUIRE_FALSE(outcome.opened);
    REQUIRE(outcome.peak <= allowance(bytes));
  }
}
