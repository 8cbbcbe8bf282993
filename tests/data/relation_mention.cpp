// SPDX-License-Identifier: MIT
#include <string>
#include <utility>
#include <vector>

#include <infty/data/relation_mention.hpp>

#include "data/refusal.hpp"
#include "support/catch.hpp"

using infty::Index;

namespace relation_mention {

std::vector<infty::RelationMention> read(const std::string& bytes) {
  return infty::tests::read_bytes("train_wiki.json", bytes, infty::read_relation_mentions);
}

std::string refused(const std::string& bytes) {
  return infty::tests::refusal("train_wiki.json", bytes, infty::read_relation_mentions);
}

const std::string entity = R"(["b", "Q1", [[1]]])";
std::string with(const std::string& h, const std::string& t = entity,
                 const std::string& tokens = R"(["a", "b"])") {
  return R"({"P1": [{"tokens": )" + tokens + R"(, "h": )" + h + R"(, "t": )" + t + "}]}";
}

}  // namespace relation_mention

TEST_CASE("read_relation_mentions: sentences, relations, and the words of both things") {
  const auto all = relation_mention::read(R"({"P931": [
      {"tokens": ["Merpati", "flight", "to", "El", "Tari", "Airport", "in", "Kupang"],
       "h": ["tari airport", "Q1", [[4, 5], [0]]], "t": ["kupang", "Q2", [[7]]], "note": 1.5}],
    "P17": [], "P6": [{"h": ["x", "", []], "tokens": ["y"], "t": ["z", "Q3", [[]]]}]})");
  REQUIRE(all.size() == 2);
  CHECK(all[0].relation == "P931");
  CHECK(all[0].tokens.size() == 8);
  CHECK(all[0].tokens[4] == "Tari");
  CHECK(all[0].head.name == "tari airport");
  CHECK(all[0].head.id == "Q1");
  CHECK(all[0].head.places == std::vector<std::vector<Index>>{{4, 5}, {0}});
  CHECK(all[0].tail.places == std::vector<std::vector<Index>>{{7}});
  CHECK(all[1].relation == "P6");
  CHECK(all[1].tail.name == "z");
  CHECK(relation_mention::read("{}").empty());
}

TEST_CASE("read_relation_mentions: what is none is refused with the file and the byte") {
  using relation_mention::entity, relation_mention::refused, relation_mention::with;
  CHECK(refused(with(entity)).empty());
  for (const auto& [bytes, said] : std::vector<std::pair<std::string, std::string>>{
           {"", "train_wiki.json: byte 0: expected an object"},
           {"[]", "expected an object"},
           {R"({"P1": [], "P1": []})", "the relation 'P1' is there twice"},
           {R"({"P1": {}})", "expected an array"},
           {R"({"P1": [{"tokens": ["a"], "h": ["a", "b", []]}]})",
            "a mention has 1 \"tokens\", 1 \"h\" and 0 \"t\""},
           {with(entity, entity, "[]"), "a mention has no words"},
           {with(entity, entity, "[7]"), "expected a string"},
           {with(R"(["b", "Q1", [[2]]])"), "word 2 of 2 words"},
           {with(entity, R"(["b", "Q1", [[9007199254740992]]])"), "a word's place is"},
           {with(R"(["b", "Q1", [[-1]]])"), "expected an unsigned integer"},
           {with(R"(["b", "Q1"])"), "an entity has 2 of name, id and places"},
           {with(R"(["b", "Q1", [], 4])"), "an entity has more than"},
           {with(R"({"name": "b"})"), "expected an array"}})
    CHECK_THAT(refused(bytes), Catch::Contains(said));
  const std::string whole = with(entity);
  for (std::size_t n = 0; n < whole.size(); ++n) CHECK_FALSE(refused(whole.substr(0, n)).empty());
}
