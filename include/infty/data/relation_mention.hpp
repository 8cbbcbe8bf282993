// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>

namespace infty {

/// A sentence that says how two things are related.
struct RelationMention {
  /// One of the two things.
  struct Entity {
    std::string name;                        ///< as the sentence has it
    std::string id;                          ///< in the knowledge base, such as Q42
    std::vector<std::vector<Index>> places;  ///< words of the sentence, of each time it is named
  };

  std::string relation;             ///< such as P931
  std::vector<std::string> tokens;  ///< the words of the sentence
  Entity head, tail;                ///< what is related to what
};

namespace detail {

/// Takes FewRel's JSON apart.
class RelationReader {
 public:
  RelationReader(std::string_view text, std::string_view where) : json_(text, where) {}

  std::vector<RelationMention> read() {
    std::set<std::string> seen;
    json_.object([&](std::string relation) {
      if (!seen.insert(relation).second)
        json_.fail("the relation ", printable(relation), " is there twice");
      json_.array([&] { mention(relation); });
    });
    json_.finish();
    return std::move(out_);
  }

 private:
  void mention(const std::string& relation) {
    RelationMention out;
    out.relation = relation;
    int tokens = 0, heads = 0, tails = 0;
    json_.object([&](const std::string& key) {
      if (key == "tokens") {
        json_.array([&] { out.tokens.push_back(json_.string()); });
        ++tokens;
      } else if (key == "h") {
        out.head = entity();
        ++heads;
      } else if (key == "t") {
        out.tail = entity();
        ++tails;
      } else {
        json_.raw();
      }
    });
    if (tokens != 1 || heads != 1 || tails != 1)
      json_.fail("a mention has ", tokens, " \"tokens\", ", heads, " \"h\" and ", tails,
                 " \"t\": it must have one of each");
    if (out.tokens.empty()) json_.fail("a mention has no words");
    for (const auto* one : {&out.head, &out.tail})
      for (const auto& places : one->places)
        for (const Index place : places)
          if (place >= std::ssize(out.tokens))
            json_.fail("word ", place, " of ", out.tokens.size(), " words");
    out_.push_back(std::move(out));
  }

  /// [name, id, [[word, ...], ...]]
  RelationMention::Entity entity() {
    RelationMention::Entity out;
    int member = 0;
    json_.array([&] {
      if (member == 0) out.name = json_.string();
      if (member == 1) out.id = json_.string();
      if (member == 2)
        json_.array([&] {
          auto& places = out.places.emplace_back();
          json_.array([&] { places.push_back(word()); });
        });
      if (++member > 3) json_.fail("an entity has more than name, id and places");
    });
    if (member != 3) json_.fail("an entity has ", member, " of name, id and places");
    return out;
  }

  Index word() {
    const std::uint64_t value = json_.integer();
    if (value >= std::uint64_t{1} << 53) json_.fail("a word's place is ", value);
    return static_cast<Index>(value);
  }

  JsonReader json_;
  std::vector<RelationMention> out_;
};

}  // namespace detail

/// Reads a file of mentions as FewRel's are [Han et al. 2018], such as `train_wiki.json`:
/// {"P931": [{"tokens": [...], "h": [name, id, [[word, ...], ...]], "t": [...]}, ...], ...}, all of
/// a relation one behind the other, in the order of the file. What else a mention has is passed
/// over.
/// @throws infty::IoError that names the byte of what is no such JSON
inline std::vector<RelationMention> read_relation_mentions(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string where = path.string();
  return detail::RelationReader(file.text(), where).read();
}

}  // namespace infty
