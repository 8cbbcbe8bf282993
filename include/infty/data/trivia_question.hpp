// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/data/text.hpp>
#include <infty/data/text_question.hpp>
#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>

namespace infty {

/// Where TriviaQA's evidence lies, and how much of it is read.
struct TriviaEvidence {
  std::filesystem::path wikipedia = {};  ///< folder of the files of "EntityPages"; empty: none
  std::filesystem::path web = {};        ///< folder of those of "SearchResults"; empty: none
  Index words = 800;  ///< of a document at most, as the set's own program has them
};

namespace detail {

inline char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

/// Whether a byte is a part of a word: a letter or a digit of ASCII, or of a longer character.
inline bool in_word(char c) {
  return (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// Where one of some names stands in a text first, as whole words, whatever the case of ASCII's
/// letters; the longest of those that begin there. Bytes [begin, end).
inline std::optional<std::pair<std::size_t, std::size_t>> find_name(
    std::string_view text, const std::vector<std::string>& names) {
  const auto same = [](char a, char b) { return ascii_lower(a) == ascii_lower(b); };
  std::optional<std::pair<std::size_t, std::size_t>> best;
  for (const std::string& name : names) {
    if (name.empty()) continue;
    for (auto from = text.begin();; ++from) {
      from = std::search(from, text.end(), name.begin(), name.end(), same);
      if (from == text.end()) break;
      const auto begin = static_cast<std::size_t>(from - text.begin()), end = begin + name.size();
      if (best && begin > best->first) break;
      const bool whole = (begin == 0 || !in_word(text[begin - 1]) || !in_word(text[begin])) &&
                         (end == text.size() || !in_word(text[end]) || !in_word(text[end - 1]));
      if (!whole) continue;
      if (!best || begin < best->first || end > best->second) best = {begin, end};
      break;
    }
  }
  return best;
}

/// A text up to its word number n.
inline std::string_view first_words(std::string_view text, Index n) {
  std::size_t end = 0;
  Index words = 0;
  for_each_token(text, TextUnit::word, [&](std::string_view word) {
    if (word == end_of_line || words++ >= n) return;
    end = static_cast<std::size_t>(word.data() - text.data()) + word.size();
  });
  return text.substr(0, end);
}

/// Takes TriviaQA's JSON apart.
class TriviaReader {
 public:
  TriviaReader(std::string_view text, std::string_view where, const TriviaEvidence& evidence)
      : json_(text, where), evidence_(evidence) {}

  TextQuestions read() {
    bool any = false;
    json_.object([&](const std::string& key) {
      if (key != "Data") return pass();
      any = true;
      json_.array([&] { question(); });
    });
    json_.finish();
    if (!any) json_.fail("there is no \"Data\"");
    return std::move(out_);
  }

 private:
  void pass() { json_.raw(); }

  void question() {
    std::string asked;
    int questions = 0;
    std::vector<std::string> names;
    std::vector<std::filesystem::path> files;  // which may come before the question
    json_.object([&](const std::string& key) {
      if (key == "Question") {
        asked = json_.string();
        ++questions;
      } else if (key == "Answer") {
        answer(names);
      } else if (key == "EntityPages") {
        documents(evidence_.wikipedia, files);
      } else if (key == "SearchResults") {
        documents(evidence_.web, files);
      } else {
        pass();
      }
    });
    if (questions != 1) json_.fail("there are ", questions, " questions where one is needed");
    for (const auto& file : files) {
      const std::size_t context = context_of(file);
      if (const auto found = find_name(out_.contexts[context], names))
        out_.questions.push_back({context, asked, found->first, found->second});
      else
        ++out_.unanswered;
    }
  }

  void answer(std::vector<std::string>& names) {
    json_.object([&](const std::string& key) {
      if (key == "Value")
        names.push_back(json_.string());
      else if (key == "Aliases" || key == "NormalizedAliases")
        json_.array([&] { names.push_back(json_.string()); });
      else
        pass();
    });
  }

  void documents(const std::filesystem::path& folder, std::vector<std::filesystem::path>& files) {
    json_.array([&] {
      int names = 0;
      json_.object([&](const std::string& key) {
        if (key != "Filename") return pass();
        ++names;
        const std::string name = json_.string();
        const std::filesystem::path file = name;
        const bool inside = !name.empty() && name.find('\0') == name.npos && file.is_relative() &&
                            std::find(file.begin(), file.end(), "..") == file.end();
        if (!inside)
          json_.fail("the document ", printable(name), " is no file in the folder of evidence");
        if (!folder.empty()) files.push_back(folder / file);
      });
      if (names != 1) json_.fail("a document has ", names, " \"Filename\": it must have one");
    });
  }

  /// The number of a document's text, which is read once.
  std::size_t context_of(const std::filesystem::path& file) {
    const auto [at, fresh] = known_.emplace(file.string(), out_.contexts.size());
    if (fresh) {
      const MappedFile mapped(file);
      out_.contexts.emplace_back(first_words(mapped.text(), evidence_.words));
    }
    return at->second;
  }

  JsonReader json_;
  const TriviaEvidence& evidence_;
  std::map<std::string, std::size_t> known_;
  TextQuestions out_;
};

}  // namespace detail

/// Reads a file of TriviaQA's questions [Joshi et al. 2017] with its evidence, such as
/// `qa/wikipedia-train.json` with `evidence/wikipedia`, or the unfiltered set: {"Data":
/// [{"Question", "Answer": {"Value", "Aliases", "NormalizedAliases"}, "EntityPages":
/// [{"Filename"}], "SearchResults": [{"Filename"}]}]}. A question is asked about each of its
/// documents by itself, as the set's own program has it. Nobody has said where in a document the
/// answer stands: it is where one of its names stands first, as whole words, in any case. Questions
/// about documents that do not have it are counted as `unanswered`, and left out, as are all of a
/// file without answers.
/// @throws infty::IoError that names the byte of what is no such JSON, or of a document whose name
/// leads out of its folder; or a document that is not there; infty::ValueError unless words >= 1
inline TextQuestions read_trivia_questions(const std::filesystem::path& path,
                                           const TriviaEvidence& evidence) {
  require_at_least("TriviaEvidence", "words", evidence.words, 1);
  const MappedFile file(path);
  const std::string where = path.string();
  return detail::TriviaReader(file.text(), where, evidence).read();
}

}  // namespace infty
