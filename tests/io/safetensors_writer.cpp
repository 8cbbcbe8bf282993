// SPDX-License-Identifier: MIT
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/eigen/backend.hpp>
#include <infty/io/safetensors_file.hpp>
#include <infty/io/safetensors_writer.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::IoError;
using infty::SafetensorsWriter;
using infty::Shape;
using infty::tests::read_text;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;

namespace {

std::string saved(const SafetensorsWriter& writer) {
  const TemporaryFolder folder;
  writer.save(folder / "a");
  return read_text(folder / "a");
}

std::uint64_t header_length(const std::string& bytes) {
  std::uint64_t length = 0;
  for (unsigned i = 8; i-- > 0;) length = length << 8U | static_cast<unsigned char>(bytes[i]);
  return length;
}

}  // namespace

TEST_CASE("SafetensorsWriter: the bytes, by hand") {
  SafetensorsWriter writer;
  writer.add("b", Shape{2}, std::vector<std::uint8_t>{1, 2});
  writer.add("a", Shape{}, std::vector<std::int32_t>{-1});
  writer.metadata("k", "\"");
  const std::string header =
      R"({"__metadata__":{"k":"\""},"a":{"dtype":"I32","shape":[],"data_offsets":[0,4]},)"
      R"("b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  CHECK(saved(writer) == infty::tests::safetensors_bytes(padded, "\xFF\xFF\xFF\xFF\x01\x02"));
}

TEST_CASE("SafetensorsWriter: an empty file is a file") {
  CHECK(saved(SafetensorsWriter{}) == infty::tests::safetensors_bytes("{}      "));
}

TEST_CASE("SafetensorsWriter: data begins at a multiple of 8 and every tensor is aligned") {
  SafetensorsWriter writer;
  writer.add("byte", Shape{3}, std::vector<std::uint8_t>{1, 2, 3});
  writer.add("wide", Shape{1}, std::vector<double>{1});
  writer.add("half", Shape{1}, std::vector<std::int16_t>{1});
  writer.add("single", Shape{1}, std::vector<float>{1});
  const std::string bytes = saved(writer);
  const std::uint64_t length = header_length(bytes);
  CHECK(length % 8 == 0);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  CHECK(header["wide"]["data_offsets"] == nlohmann::json{0, 8});
  CHECK(header["single"]["data_offsets"] == nlohmann::json{8, 12});
  CHECK(header["half"]["data_offsets"] == nlohmann::json{12, 14});
  CHECK(header["byte"]["data_offsets"] == nlohmann::json{14, 17});
  CHECK(bytes.size() == 8 + length + 17);
}

TEST_CASE("SafetensorsWriter: the order of adding does not show") {
  SafetensorsWriter one, two;
  one.add("a", Shape{1}, std::vector<float>{1});
  one.add("b", Shape{1}, std::vector<float>{2});
  one.metadata("k", "v");
  one.metadata("j", "w");
  two.metadata("j", "w");
  two.metadata("k", "v");
  two.add("b", Shape{1}, std::vector<float>{2});
  two.add("a", Shape{1}, std::vector<float>{1});
  CHECK(saved(one) == saved(two));
}

TEST_CASE("SafetensorsWriter: add copies, add_view looks when it saves") {
  std::array<float, 2> values{1, 2};
  SafetensorsWriter copies, views;
  copies.add<float>("a", Shape{2}, values);
  views.add_view<float>("a", Shape{2}, values);
  CHECK(saved(copies) == saved(views));
  const SafetensorsWriter copied_writer = copies;
  copies = SafetensorsWriter{};
  const std::string before = saved(views);
  values[0] = 5;
  CHECK(saved(copied_writer) == before);
  CHECK(saved(views) != before);
}

TEST_CASE("SafetensorsWriter: a tensor is added with its shape, as it was") {
  auto tensor = infty::Tensor<double>::from(Shape{2, 1}, {1, 2});
  SafetensorsWriter from_tensor, from_values;
  from_tensor.add("a", tensor);
  tensor.fill(0);
  from_values.add("a", Shape{2, 1}, std::vector<double>{1, 2});
  CHECK(saved(from_tensor) == saved(from_values));
}

TEST_CASE("SafetensorsWriter: numbers rounded to bfloat16, integers as they are") {
  const TemporaryFolder folder;
  // Ties to even, a carry, a denormal, zeros, and what is no number.
  const std::vector<float> numbers{1.00390625f, 1.01171875f, 0x1.ffp+3f, 1e-40f, -0.f,
                                   0.f,         -3.14159f,   INFINITY,   NAN};
  SafetensorsWriter writer(infty::StoredFloats::bfloat16);
  writer.add("vector", Shape{9}, numbers);
  writer.add("tensor", infty::Tensor<double>::from({2}, {1.00390625, 1e-320}));
  writer.add("counts", Shape{2}, std::vector<std::int64_t>{257, -1});
  writer.add("ids", Shape{3}, std::vector<float>{257, 0, -3});
  writer.add("few", Shape{2}, std::vector<float>{255, 1});
  writer.add("even", Shape{3}, std::vector<float>{512, -1024, 16777216});
  writer.add("large ids", Shape{3}, std::vector<float>{8388609, 16777215, 10000001});
  writer.add("larger ids", Shape{1}, std::vector<double>{9007199254740991});
  writer.add_view("view", Shape{9}, std::span<const float>(numbers));
  writer.save(folder / "a");
  const infty::SafetensorsFile file(folder / "a");
  CHECK(file.tensors().at("vector").dtype == infty::DType::BF16);
  CHECK(file.tensors().at("tensor").dtype == infty::DType::BF16);
  CHECK(file.tensors().at("view").dtype == infty::DType::F32);
  const auto read = file.read<float>("vector");
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i)
    CHECK(std::bit_cast<std::uint32_t>(read[i]) == infty::detail::bfloat16_bits(numbers[i]));
  CHECK(read[0] == 1);
  CHECK(read[1] == 1.015625f);
  CHECK(read[2] == 16);
  CHECK(std::isnan(read[8]));
  CHECK(file.read<double>("tensor") == std::vector<double>{1, 0});
  CHECK(file.read<std::int64_t>("counts") == std::vector<std::int64_t>{257, -1});
  CHECK(file.tensors().at("ids").dtype == infty::DType::F32);
  CHECK(file.read<float>("ids") == std::vector<float>{257, 0, -3});
  CHECK(file.tensors().at("few").dtype == infty::DType::BF16);
  // Whole numbers that T tells apart, however large, unless none is changed.
  CHECK(file.tensors().at("even").dtype == infty::DType::BF16);
  CHECK(file.read<float>("large ids") == std::vector<float>{8388609, 16777215, 10000001});
  CHECK(file.read<double>("larger ids") == std::vector<double>{9007199254740991});
  // What is finite stays so, or is refused.
  CHECK_THROWS_WITH(writer.add("large", Shape{1}, std::vector<float>{3.4e38f}),
                    Contains("safetensors") && Contains("large") && Contains("3.4e+38"));
  CHECK_THROWS_AS(writer.add("larger", Shape{1}, std::vector<double>{-1e300}), IoError);
}

TEST_CASE("SafetensorsWriter: refuses names and sizes that would break the file") {
  SafetensorsWriter writer;
  const std::vector<float> one{1};
  writer.add("a", Shape{1}, one);
  writer.metadata("k", "v");
  const std::string before = saved(writer);
  CHECK_THROWS_WITH(writer.add("a", Shape{1}, one), Contains("'a' is taken"));
  CHECK_THROWS_WITH(writer.add("__metadata__", Shape{1}, one), Contains("__metadata__"));
  CHECK_THROWS_WITH(writer.add("\xFF", Shape{1}, one), Contains("not UTF-8"));
  CHECK_THROWS_WITH(writer.add("b", Shape{2}, one), Contains("4 bytes are not F32 [2]"));
  CHECK_THROWS_AS(writer.add("b", Shape{0}, one), IoError);
  CHECK_THROWS_AS(writer.add_view<float>("b", Shape{1, 2}, one), IoError);
  const std::array<std::byte, 3> three{};
  CHECK_THROWS_AS(writer.add_bytes("b", infty::DType::F16, Shape{1}, three), IoError);
  CHECK_THROWS_WITH(writer.metadata("k", "w"), Contains("'k' is taken"));
  writer.metadata("k", "v");  // what it is already
  CHECK_THROWS_AS(writer.metadata("\xC0\x80", "w"), IoError);
  CHECK_THROWS_AS(writer.metadata("l", "\xED\xA0\x80"), IoError);
  CHECK(saved(writer) == before);
}

TEST_CASE("SafetensorsWriter: a save that fails leaves the old file") {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  writer.add("a", Shape{1}, std::vector<float>{1});
  CHECK_THROWS_WITH(writer.save(folder / "none/a"), Contains("No such file"));
  std::filesystem::create_directory(folder / "taken");
  CHECK_THROWS_AS(writer.save(folder / "taken"), IoError);
  CHECK(std::filesystem::is_directory(folder / "taken"));
  write_text(folder / "old", "old");
  writer.save(folder / "old");
  CHECK(read_text(folder / "old") == saved(writer));
  const std::filesystem::directory_iterator files(folder.path());
  CHECK(std::distance(begin(files), end(files)) == 2);
}
