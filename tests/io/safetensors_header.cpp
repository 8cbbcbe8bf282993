// SPDX-License-Identifier: MIT
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <infty/io/safetensors_header.hpp>

#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::DType;
using infty::IoError;
using infty::parse_safetensors_header;
using infty::Shape;

namespace {

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

// Tensors of one byte each element, by their offsets.
std::string layout(const std::vector<std::pair<int, int>>& ranges) {
  std::string out = "{";
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto [begin, end] = ranges[i];
    if (i > 0) out += ',';
    out += '"' + std::to_string(i) + R"(":{"dtype":"U8","shape":[)" + std::to_string(end - begin) +
           R"(],"data_offsets":[)" + std::to_string(begin) + ',' + std::to_string(end) + "]}";
  }
  return out + '}';
}

}  // namespace

TEST_CASE("parse_safetensors_header: reads metadata and entries, in any order of fields") {
  const auto header = parse_safetensors_header(
      R"({"b":{"data_offsets":[8,20],"shape":[3,2],"dtype":"F16"},"__metadata__":{"k":"v"},)"
      R"("a":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}   )",
      20, "test");
  CHECK(header.metadata.size() == 1);
  CHECK(header.metadata.at("k") == "v");
  REQUIRE(header.tensors.size() == 2);
  const auto& b = header.tensors.at("b");
  CHECK(b.dtype == DType::F16);
  CHECK(b.shape == Shape{3, 2});
  CHECK(b.begin == 8);
  CHECK(b.end == 20);
  CHECK(header.tensors.at("a").shape == Shape{});
}

TEST_CASE("parse_safetensors_header: empty tensors may stand anywhere between the others") {
  CHECK(parse_safetensors_header(layout({{0, 0}, {0, 2}, {2, 2}, {2, 3}, {3, 3}}), 3, "")
            .tensors.size() == 5);
  CHECK(parse_safetensors_header("{}", 0, "").tensors.empty());
  CHECK_NOTHROW(parse_safetensors_header(one("F32", "[4611686018427387904,0]", "[0,0]"), 0, ""));
}

TEST_CASE("parse_safetensors_header: the tensors must be a partition of the data") {
  CHECK_NOTHROW(parse_safetensors_header(layout({{2, 4}, {0, 2}}), 4, ""));
  CHECK_THROWS_WITH(parse_safetensors_header(layout({{0, 2}, {1, 4}}), 4, "f"),
                    Contains("overlaps"));
  CHECK_THROWS_WITH(parse_safetensors_header(layout({{0, 2}, {0, 2}}), 2, "f"),
                    Contains("overlaps"));
  CHECK_THROWS_WITH(parse_safetensors_header(layout({{0, 4}, {2, 2}}), 4, "f"),
                    Contains("overlaps"));
  CHECK_THROWS_WITH(parse_safetensors_header(layout({{0, 2}, {3, 4}}), 4, "f"),
                    Contains("hole from 2"));
  CHECK_THROWS_WITH(parse_safetensors_header(layout({{1, 4}}), 4, "f"), Contains("hole from 0"));
  CHECK_THROWS_WITH(parse_safetensors_header(layout({{0, 3}}), 4, "f"), Contains("end at 3"));
  CHECK_THROWS_WITH(parse_safetensors_header(layout({{0, 5}}), 4, "f"), Contains("past the end"));
  CHECK_THROWS_WITH(parse_safetensors_header("{}", 1, "f"), Contains("end at 0"));
  CHECK_THROWS_WITH(parse_safetensors_header(one("U8", "[1]", "[2,1]"), 2, "f"),
                    Contains("f: tensor 'x' of data_offsets [2, 1] ends before"));
}

TEST_CASE("parse_safetensors_header: shape and dtype must give the length") {
  CHECK_NOTHROW(parse_safetensors_header(one("F32", "[2]", "[0,8]"), 8, ""));
  CHECK_THROWS_WITH(parse_safetensors_header(one("F64", "[2]", "[0,8]"), 8, "f"),
                    Contains("does not have the length of F64 [2]"));
  for (const char* shape : {"[]", "[1]", "[3]", "[0]", "[2,0]", "[2,2]", "[4611686018427387904]"})
    CHECK_THROWS_AS(parse_safetensors_header(one("F32", shape, "[0,8]"), 8, ""), IoError);
  CHECK_THROWS_AS(parse_safetensors_header(one("F32", "[2]", "[0,7]"), 7, ""), IoError);
}

TEST_CASE("parse_safetensors_header: no product of extents wraps around") {
  for (const char* shape :
       {"[18446744073709551615]", "[9223372036854775808]", "[4611686018427387905]",
        "[4294967296,4294967296]", "[4294967296,4294967296,4294967296,0]",
        "[2,9223372036854775809]", "[0,4294967296,4294967296]", "[2147483648,2147483648,2,2]",
        "[1,1,1,1,1,1,1]"})
    for (const char* offsets : {"[0,0]", "[0,8]"}) {
      CAPTURE(shape, offsets);
      CHECK_THROWS_AS(parse_safetensors_header(one("F32", shape, offsets), 8, ""), IoError);
      CHECK_THROWS_AS(parse_safetensors_header(one("F32", shape, offsets), 0, ""), IoError);
    }
}

TEST_CASE("parse_safetensors_header: refuses wrong fields") {
  const std::string text = GENERATE(values<std::string>({
      R"()",
      R"( {})",
      R"([])",
      R"({"x":[]})",
      R"({"x":1})",
      R"({"x":"y"})",
      R"({"x":{}})",
      R"({}})",
      R"({}x)",
      R"({"x":{"dtype":"U8","shape":[1]}})",
      R"({"x":{"dtype":"U8","data_offsets":[0,1]}})",
      R"({"x":{"shape":[1],"data_offsets":[0,1]}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1}})",
      R"({"x":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
      R"({"x":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"data_offsets":[0,1]}})",
      R"({"x":{"dtype":"U9","shape":[1],"data_offsets":[0,1]}})",
      R"({"x":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})",
      R"({"x":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})",
      R"({"x":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})",
      R"({"x":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})",
      R"({"x":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})",
      R"({"x":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0]}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[]}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551616]}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[18446744073709551615,0]}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
      R"("x":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
      R"("\u0078":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"__metadata__":1})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"__metadata__":null})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"__metadata__":{"k":1}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"__metadata__":{"k":{}}})",
      R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"__metadata__":{"k":"a","k":"a"}})",
      R"({"__metadata__":{},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"__metadata__":{}})",
  }));
  CAPTURE(text);
  CHECK_THROWS_AS(parse_safetensors_header(text, 1, "test"), IoError);
}

TEST_CASE("parse_safetensors_header: a message shows the tensor's name without its tricks") {
  CHECK_THROWS_WITH(parse_safetensors_header(R"({"a\u001b[2Jb":{"dtype":"U9"}})", 0, "f"),
                    Contains("tensor 'a?[2Jb' has the unknown dtype 'U9'"));
}
