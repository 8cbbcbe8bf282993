// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/data/dialogue.hpp>

#include "../support/json.hpp"

// The conversations of CMU-DoG as they are published [Zhou, Prabhumoye and Black 2018]: a JSON file
// each, and one for every document that they are about.

namespace dialogue {

using infty::Dialogue;
using infty::Index;

namespace detail {

/// A text in one line: without white space at its ends, one blank between its words, and nothing
/// that `read_dialogues` takes for a mark of its own.
inline std::string one_line(std::string_view text) {
  constexpr std::string_view white = " \t\r\n\v\f";
  std::string out;
  while (true) {
    const std::size_t begin = text.find_first_not_of(white);
    if (begin == text.npos) break;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(white));
    text.remove_prefix(word.size());
    if (!out.empty()) out += ' ';
    out += word;
  }
  for (const std::string_view mark : {"Document:", "Dialog:"})
    for (std::size_t at; (at = out.find(mark)) != out.npos;)
      out.insert(at + mark.size() - 1, 1, ' ');
  return out;
}

/// The member of an object.
inline const nlohmann::json& found(const nlohmann::json& json, const char* name,
                                   const std::string& where) {
  infty::require<infty::IoError>(json.is_object() && json.contains(name), "json", where, " has no ",
                                 name);
  return json.at(name);
}

/// The same as a value of this type.
template <class T>
T member(const nlohmann::json& json, const char* name, const std::string& where) {
  T value{};
  support::read(found(json, name, where), value, where + ": " + name);
  return value;
}

/// The JSON files of a folder, by their names.
inline std::vector<std::filesystem::path> json_files(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  infty::require<infty::IoError>(!error && !files.empty(), "prepare", folder.string(),
                                 " holds no JSON files: --data must be the folder of the published "
                                 "Conversations and WikiData");
  std::sort(files.begin(), files.end());
  return files;
}

/// A document in one line: the fields of its first section, then the other three.
inline std::string document_text(const nlohmann::json& json, const std::string& where) {
  const nlohmann::json& about = found(json, "0", where);
  std::string text;
  const auto add = [&](const nlohmann::json& part, const std::string& name) {
    std::string own;
    support::read(part, own, name);
    if (own = one_line(own); !own.empty()) text += (text.empty() ? "" : " ") + own;
  };
  for (const char* const field : {"movieName", "year", "director", "genre", "cast", "rating",
                                  "critical_response", "introduction"}) {
    const nlohmann::json& value = found(about, field, where);
    const std::string name = where + ": " + field;
    if (value.is_array())
      for (const auto& part : value) add(part, name);
    else
      add(value, name);
  }
  for (const char* const section : {"1", "2", "3"})
    add(found(json, section, where), where + ": " + section);
  return text;
}

}  // namespace detail

/// The documents of a folder, by the number that conversations name them by.
/// @throws infty::IoError that names the file which is damaged, or has the number of another one
inline std::map<Index, std::string> read_documents(const std::filesystem::path& folder) {
  std::map<Index, std::string> documents;
  for (const auto& path : detail::json_files(folder)) {
    const auto json = support::read_json(path);
    const auto number = detail::member<Index>(json, "wikiDocumentIdx", path.string());
    infty::require<infty::IoError>(
        documents.emplace(number, detail::document_text(json, path.string())).second, "prepare",
        path.string(), ": another document has the number ", number);
  }
  return documents;
}

/// The conversations of a folder, sorted by the names of their files: what one user says without
/// the other in between is a turn. One in which nobody says anything has no turns.
/// @throws infty::IoError that names the file which is damaged, or whose document is not there
inline std::vector<Dialogue> read_conversations(const std::filesystem::path& folder,
                                                const std::map<Index, std::string>& documents) {
  std::vector<Dialogue> all;
  for (const auto& path : detail::json_files(folder)) {
    const std::string where = path.string();
    const auto json = support::read_json(path);
    const auto number = detail::member<Index>(json, "wikiDocumentIdx", where);
    const auto document = documents.find(number);
    infty::require<infty::IoError>(document != documents.end(), "prepare", where,
                                   " is about document ", number, ", which is not there");
    Dialogue dialogue{.document = document->second, .turns = {}};
    std::string last;
    const nlohmann::json& history = detail::found(json, "history", where);
    infty::require<infty::IoError>(history.is_array(), "json", where, ": history is ",
                                   history.type_name(), ": an array is needed");
    for (const auto& message : history) {
      const auto user = detail::member<std::string>(message, "uid", where + ": history");
      const auto text =
          detail::one_line(detail::member<std::string>(message, "text", where + ": history"));
      if (text.empty()) continue;
      if (dialogue.turns.empty() || user != last)
        dialogue.turns.push_back(text);
      else
        dialogue.turns.back() += ' ' + text;
      last = user;
    }
    all.push_back(std::move(dialogue));
  }
  return all;
}

/// Dialogues as the text that `read_dialogues` reads.
inline std::string dialogues_text(const std::vector<Dialogue>& all) {
  std::string text;
  for (const Dialogue& dialogue : all) {
    text += "Document: " + dialogue.document + '\n';
    for (std::size_t i = 0; i < dialogue.turns.size(); ++i)
      text += (i == 0 ? "Dialog: " : "") + dialogue.turns[i] + '\n';
    text += '\n';
  }
  return text;
}

}  // namespace dialogue
