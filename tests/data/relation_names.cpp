// SPDX-License-Identifier: MIT
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <infty/data/relation_names.hpp>

#include "data/refusal.hpp"
#include "support/catch.hpp"

TEST_CASE("read_relation_names: names and descriptions, and what is none is refused") {
  const auto read = [](const std::string& bytes) {
    return infty::tests::read_bytes("pid2name.json", bytes, infty::read_relation_names);
  };
  const auto names = read(R"({"P6": ["head of government", "of a \"town\""], "P17": ["country"],
                              "P1": ["a", ""]})");
  REQUIRE(names.size() == 3);
  CHECK(names.at("P6").name == "head of government");
  CHECK(names.at("P6").description == "of a \"town\"");
  CHECK(names.at("P17").name == "country");
  CHECK(names.at("P17").description.empty());
  CHECK(read("{}").empty());
  for (const auto& [bytes, said] : std::vector<std::pair<std::string, std::string>>{
           {"", "pid2name.json: byte 0: expected an object"},
           {"[]", "expected an object"},
           {R"({"P6": "x"})", "expected an array"},
           {R"({"P6": [1]})", "expected a string"},
           {R"({"P6": []})", "the relation 'P6' has no name"},
           {R"({"P6": [""]})", "the relation 'P6' has no name"},
           {R"({"P6": ["a", "b", "c"]})", "more than a name and a description"},
           {R"({"P6": ["a"], "P6": ["b"]})", "the relation 'P6' is there twice"},
           {R"({"P6": ["a"]} x)", "byte "}})
    CHECK_THAT(infty::tests::refusal("pid2name.json", bytes, infty::read_relation_names),
               Catch::Contains(said));
}
