// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>

namespace infty {

/// What a relation is called.
struct RelationName {
  std::string name;         ///< such as "head of government"
  std::string description;  ///< in a sentence, or empty
};

/// Reads a file of the names of relations as FewRel's is, `pid2name.json`: {"P6": ["head of
/// government", "head of the executive power of ..."], ...}.
/// @throws infty::IoError that names the byte of what is no such JSON
inline std::map<std::string, RelationName> read_relation_names(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string where = path.string();
  detail::JsonReader json(file.text(), where);
  std::map<std::string, RelationName> out;
  json.object([&](std::string relation) {
    RelationName own;
    int members = 0;
    json.array([&] {
      if (++members > 2) json.fail("a relation has more than a name and a description");
      (members == 1 ? own.name : own.description) = json.string();
    });
    if (own.name.empty()) json.fail("the relation ", detail::printable(relation), " has no name");
    if (!out.emplace(relation, std::move(own)).second)
      json.fail("the relation ", detail::printable(relation), " is there twice");
  });
  json.finish();
  return out;
}

}  // namespace infty
