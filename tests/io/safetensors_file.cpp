// SPDX-License-Identifier: MIT
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/eigen/backend.hpp>
#include <infty/io/safetensors_file.hpp>
#include <infty/io/safetensors_writer.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::DType;
using infty::IoError;
using infty::SafetensorsFile;
using infty::SafetensorsWriter;
using infty::Shape;
using infty::Tensor;
using infty::tests::safetensors_bytes;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;

namespace {

// The extremes of a type, and what is hard to keep in a float.
template <class T>
std::vector<T> hard_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values{0, 1, Limits::min(), Limits::max(), Limits::lowest()};
  if constexpr (std::is_floating_point_v<T>) {
    for (const T value :
         {static_cast<T>(-0.0), static_cast<T>(1e30), static_cast<T>(0.1), Limits::denorm_min(),
          -Limits::denorm_min(), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()})
      values.push_back(value);
  }
  return values;
}

// Equality of bits: NaN equals itself, -0 is not 0.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(INFTY_TEST_DATA) / "golden" / (name + ".safetensors");
}

}  // namespace

TEMPLATE_TEST_CASE("SafetensorsFile: reads what was written, bit for bit", "", float, double,
                   std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                   std::uint32_t, std::int64_t, std::uint64_t) {
  const TemporaryFolder folder;
  const auto values = hard_values<TestType>();
  const auto count = static_cast<infty::Index>(values.size());
  SafetensorsWriter writer;
  writer.add("values", Shape{count}, values);
  writer.add("scalar", Shape{}, std::vector<TestType>{TestType(42)});
  writer.add("empty", Shape{0}, std::vector<TestType>{});
  writer.add("hollow", Shape{2, 0, 3}, std::vector<TestType>{});
  writer.add("six", Shape{1, 1, count, 1, 1, 1}, values);
  writer.metadata("kind", "round trip");
  writer.save(folder / "a");

  const SafetensorsFile file(folder / "a");
  CHECK(file.names() == std::vector<std::string>{"empty", "hollow", "scalar", "six", "values"});
  CHECK(file.metadata("kind") == "round trip");
  CHECK(file.dtype("values") == infty::dtype_of<TestType>());
  CHECK(same_bits(file.read<TestType>("values"), values));
  CHECK(file.shape("scalar") == Shape{});
  CHECK(file.read<TestType>("scalar") == std::vector<TestType>{TestType(42)});
  CHECK(file.tensor<TestType>("scalar").item() == TestType(42));
  CHECK(file.shape("empty") == Shape{0});
  CHECK(file.read<TestType>("empty").empty());
  CHECK(file.shape("hollow") == Shape{2, 0, 3});
  CHECK(file.tensor<TestType>("hollow").shape() == Shape{2, 0, 3});
  CHECK(file.shape("six") == Shape{1, 1, count, 1, 1, 1});
  CHECK(same_bits(file.tensor<TestType>("six").to_vector(), values));
}

TEST_CASE("SafetensorsFile: names of any characters come back") {
  const TemporaryFolder folder;
  const std::vector<std::string> names{"",
                                       " ",
                                       "\"",
                                       "\\",
                                       "\n\t\x01",
                                       "a/b.0.weight",
                                       "caf\xC3\xA9",
                                       "\xF0\x9F\x98\x80",
                                       std::string("\0x", 2),
                                       "data_offsets"};
  SafetensorsWriter writer;
  for (const auto& name : names) writer.add(name, Shape{}, std::vector<std::int8_t>{1});
  for (const auto& name : names) writer.metadata(name, name);
  writer.save(folder / "a");
  const SafetensorsFile file(folder / "a");
  CHECK(file.tensors().size() == names.size());
  for (const auto& name : names) {
    CHECK(file.has(name));
    CHECK(file.metadata(name) == name);
  }
}

TEST_CASE("SafetensorsFile: half precision is read exactly") {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  const std::vector<std::uint16_t> half{0x3C00, 0xC000, 0x7BFF, 0x0001, 0x8000, 0x7C00};
  const std::vector<std::uint16_t> brain{0x3F80, 0xC000, 0x7F7F, 0x0001, 0x8000, 0x7F80};
  writer.add_bytes("half", DType::F16, Shape{2, 3}, std::as_bytes(std::span(half)));
  writer.add_bytes("brain", DType::BF16, Shape{6}, std::as_bytes(std::span(brain)));
  writer.save(folder / "a");
  const SafetensorsFile file(folder / "a");
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(same_bits(file.read<float>("half"), {1, -2, 65504, 0x1p-24F, -0.0F, infinity}));
  CHECK(same_bits(file.read<float>("brain"), {1, -2, 0x1.FEp127F, 0x1p-133F, -0.0F, infinity}));
  CHECK(file.read<double>("half")[2] == 65504);
  CHECK(file.tensor<double>("half").shape() == Shape{2, 3});
  const auto bytes = file.read_bytes("half");
  CHECK(std::memcmp(bytes.data(), half.data(), bytes.size()) == 0);
}

TEST_CASE("SafetensorsFile: bfloat16 is written and read as it is, and read from what is wider") {
  using infty::BFloat16;
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  const std::vector<BFloat16> brain{BFloat16(1.F), BFloat16(-0.F), BFloat16(3.14F)};
  writer.add("brain", Shape{3}, brain);
  writer.add("wide", Shape{3}, std::vector<double>{1, -0., 3.14});
  writer.add("large", Shape{1}, std::vector<float>{3.4e38F});
  writer.add("whole", Shape{1}, std::vector<std::int32_t>{1});
  writer.save(folder / "a");
  const SafetensorsFile file(folder / "a");
  CHECK(file.dtype("brain") == DType::BF16);
  for (const char* const name : {"brain", "wide"}) {
    const auto read = file.read<BFloat16>(name);
    const auto tensor = file.tensor<BFloat16>(name).to_vector();
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(read[i].bits() == brain[i].bits());
      CHECK(tensor[i].bits() == brain[i].bits());
    }
  }
  CHECK_THROWS_WITH(file.read<BFloat16>("large"), Contains("does not fit from F32 into BF16"));
  CHECK_THROWS_WITH(file.read<BFloat16>("whole"), Contains("is I32, asked for as BF16"));
}

TEST_CASE("SafetensorsFile: converts without loss, and rounds double to float") {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  std::vector<std::int32_t> many(10'000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int32_t>(i) - 5'000;
  writer.add("many", Shape{100, 100}, many);
  writer.add("fraction", Shape{2}, std::vector<double>{0.1, -1e-60});
  writer.add("large", Shape{2}, std::vector<double>{1, 1e300});
  writer.add("unsigned", Shape{2}, std::vector<std::uint64_t>{1, std::uint64_t{1} << 63U});
  const std::array<bool, 2> flags{false, true};
  writer.add<bool>("flags", Shape{2}, flags);
  const std::array<std::byte, 1> two{std::byte{2}};
  writer.add_bytes("not_a_flag", DType::BOOL, Shape{1}, two);
  writer.save(folder / "a");

  const SafetensorsFile file(folder / "a");
  CHECK(file.read<std::int64_t>("many") == std::vector<std::int64_t>(many.begin(), many.end()));
  CHECK(file.read<std::int16_t>("many") == std::vector<std::int16_t>(many.begin(), many.end()));
  CHECK_THROWS_WITH(file.read<std::int8_t>("many"),
                    Contains("'many'") && Contains("element 0") && Contains("I32 into I8"));
  CHECK(file.read<float>("fraction") == std::vector<float>{0.1F, -0.0F});
  CHECK_THROWS_WITH(file.read<float>("large"), Contains("element 1"));
  CHECK(file.read<double>("large")[1] == 1e300);
  CHECK_THROWS_WITH(file.read<std::int64_t>("unsigned"), Contains("element 1"));
  CHECK(file.dtype("flags") == DType::BOOL);
  CHECK(file.read<std::uint8_t>("flags") == std::vector<std::uint8_t>{0, 1});
  CHECK_THROWS_AS(file.read<std::uint8_t>("not_a_flag"), IoError);
  CHECK_THROWS_WITH(file.read<float>("many"), Contains("'many' is I32, asked for as F32"));
  CHECK_THROWS_WITH(file.read<std::int32_t>("fraction"), Contains("is F64, asked for as I32"));
}

TEST_CASE("SafetensorsFile: read_into fits or changes nothing") {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  writer.add("a", Shape{2}, std::vector<double>{3, 4});
  writer.add("large", Shape{2}, std::vector<double>{5, 1e300});
  writer.save(folder / "a");
  const SafetensorsFile file(folder / "a");
  auto to = Tensor<float>::full(Shape{2}, 1);
  auto other = Tensor<float>::full(Shape{1, 2}, 1);
  CHECK_THROWS_WITH(file.read_into("a", other), Contains("'a' is [2], [1, 2] is needed"));
  CHECK_THROWS_AS(file.read_into("large", to), IoError);
  CHECK_THROWS_WITH(file.read_into("b", to), Contains("no tensor 'b'"));
  CHECK(to.to_vector() == std::vector<float>{1, 1});
  CHECK(other.to_vector() == std::vector<float>{1, 1});
  file.read_into("a", to);
  CHECK(to.to_vector() == std::vector<float>{3, 4});
}

TEST_CASE("SafetensorsFile: what is not there is an error that names file and tensor") {
  const TemporaryFolder folder;
  write_text(folder / "a", safetensors_bytes("{}"));
  const SafetensorsFile file(folder / "a");
  const std::string where = (folder / "a").string();
  CHECK_FALSE(file.has("b"));
  CHECK(file.names().empty());
  CHECK_THROWS_WITH(file.shape("b"), Contains(where) && Contains("no tensor 'b'"));
  CHECK_THROWS_AS(file.dtype("b"), IoError);
  CHECK_THROWS_AS(file.read<float>("b"), IoError);
  CHECK_THROWS_AS(file.tensor<float>("b"), IoError);
  CHECK_THROWS_AS(file.read_bytes("b"), IoError);
  CHECK_THROWS_AS(file.check_shape("b", Shape{}), IoError);
  CHECK_THROWS_WITH(file.metadata("b"), Contains("no metadata 'b'"));
  CHECK_THROWS_AS(SafetensorsFile(folder / "none"), IoError);
  CHECK_THROWS_AS(SafetensorsFile(folder.path()), IoError);
}

TEST_CASE("SafetensorsFile: a file that shrank since it was opened is an error") {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  writer.add("a", Shape{2}, std::vector<double>{3, 4});
  writer.save(folder / "a");
  const SafetensorsFile file(folder / "a");
  std::filesystem::resize_file(folder / "a", std::filesystem::file_size(folder / "a") - 1);
  auto to = Tensor<double>::full(Shape{2}, 1);
  CHECK_THROWS_AS(file.read_into("a", to), IoError);
  CHECK(to.to_vector() == std::vector<double>{1, 1});
}

TEST_CASE("SafetensorsFile: golden cases of the long-term memory") {
  const SafetensorsFile file(golden("ltm_even"));
  CHECK(file.metadata("basis") == "12");
  CHECK(file.metadata("tau") == "0.75");
  CHECK(file.metadata("sigmas") == "[0.01, 0.05]");
  CHECK(file.metadata("sigma_sq_floor") == "1e-06");
  CHECK(file.tensors().size() == 58);
  CHECK(file.shape("ridge.first") == Shape{16, 12});
  CHECK(file.shape("ridge.next") == Shape{26, 12});
  CHECK(file.shape("resample.psi") == Shape{10, 12});
  const auto mu = file.read<double>("basis.mu");
  CHECK(mu.size() == 12);
  CHECK(mu.front() == 0);
  CHECK(mu.back() == 1);
}

TEST_CASE("SafetensorsFile: every golden case agrees with nlohmann/json's reading of its header") {
  int files = 0;
  for (const auto& found : std::filesystem::directory_iterator(golden("").parent_path())) {
    if (found.path().extension() != ".safetensors") continue;
    CAPTURE(found.path());
    ++files;
    const SafetensorsFile file(found.path());
    const std::string bytes = infty::tests::read_text(found.path());
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    auto header = nlohmann::json::parse(bytes.substr(8, length));
    CHECK(header["__metadata__"].size() == file.metadata().size());
    for (const auto& [key, value] : file.metadata()) CHECK(header["__metadata__"][key] == value);
    CHECK(header.size() == file.tensors().size() + 1);
    for (const auto& [name, entry] : file.tensors()) {
      CAPTURE(name);
      const auto& expected = header[name];
      REQUIRE(expected["dtype"] == std::string(infty::dtype_name(entry.dtype)));
      REQUIRE(expected["shape"] ==
              std::vector<infty::Index>(entry.shape.begin(), entry.shape.end()));
      const std::uint64_t begin = expected["data_offsets"][0], end = expected["data_offsets"][1];
      const auto raw = file.read_bytes(name);
      REQUIRE(raw.size() == end - begin);
      REQUIRE(std::memcmp(raw.data(), bytes.data() + 8 + length + begin, raw.size()) == 0);
      if (entry.dtype == DType::F64)
        for (const double value : file.read<double>(name)) REQUIRE(std::isfinite(value));
    }
  }
  CHECK(files >= 9);
}
