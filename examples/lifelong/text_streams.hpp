// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/data/dialogue.hpp>
#include <infty/io/mapped_file.hpp>

#include "../support/fingerprint.hpp"
#include "articles.hpp"
#include "passages.hpp"

namespace lifelong {

/// The fingerprint of a file: its name and its bytes.
inline std::string fingerprint_of(const std::filesystem::path& file) {
  support::Fingerprint fingerprint;
  fingerprint.add_text(file.filename().string());
  fingerprint.add_text(infty::MappedFile(file).text());
  return support::as_hex(fingerprint.bits());
}

/// Which text of a folder a passage is from: a class a file, in the order of their names, of which
/// the first nine tenths are learned from and the last is for the test.
/// @throws infty::IoError for a folder without texts; infty::ValueError as `passage_stream`
inline Stream text_stream(const Settings& s, std::uint64_t seed, bool reading) {
  std::vector<infty::MappedFile> texts;
  std::vector<TextClass> classes;
  support::Fingerprint fingerprint;
  for (const auto& file : infty::text_files(s.texts)) {
    const std::string_view text = texts.emplace_back(file).text();
    fingerprint.add_text(file.filename().string());
    fingerprint.add_text(text);
    Words words;
    add_words(text, words);
    const auto tenth = std::ssize(words) / 10;
    const auto learned = words.begin() + 9 * tenth;
    classes.push_back(
        {file.stem().string(), {{words.begin(), learned}}, {{learned, learned + tenth}}});
  }
  return passage_stream(s, seed, classes, support::as_hex(fingerprint.bits()), reading);
}

/// The first words of a document, two at most: the name of its class.
inline std::string name_of(std::string_view document) {
  Words words;
  add_words(document.substr(0, 200), words);
  std::string name;
  for (std::size_t i = 0; i < std::min<std::size_t>(words.size(), 2); ++i) {
    if (i > 0) name += ' ';
    name += words[i];
  }
  return name;
}

/// The conversations of a file that `read_dialogues` reads, by the document that they are about,
/// and none in which nothing is said.
/// @throws infty::IoError for a file of another form, or without any
inline std::map<std::string, std::vector<infty::Dialogue>> dialogues_by_document(
    const std::filesystem::path& file) {
  auto all = infty::detail::explained<infty::ValueError>(
      [&] { return infty::read_dialogues(infty::MappedFile(file).text()); },
      [&](const char* what) {
        infty::raise<infty::IoError>("lifelong", file.string(), ": ", what);
      });
  std::map<std::string, std::vector<infty::Dialogue>> documents;
  for (infty::Dialogue& dialogue : all)
    if (!dialogue.turns.empty()) documents[dialogue.document].push_back(std::move(dialogue));
  infty::require<infty::IoError>(!documents.empty(), "lifelong", file.string(),
                                 ": there is no conversation about a document in it");
  return documents;
}

/// Which document a conversation is about, by what is said in it: a class a document of a file that
/// `read_dialogues` reads, in the order of the documents' texts, called by their first two words.
/// The first nine tenths of a document's conversations are learned from, the others are for the
/// test.
/// @throws infty::IoError as `dialogues_by_document`; infty::ValueError as `passage_stream`
inline Stream dialogue_stream(const Settings& s, std::uint64_t seed, bool reading) {
  const auto documents = dialogues_by_document(s.dialogues);
  std::vector<TextClass> classes;
  for (const auto& [document, dialogues] : documents) {
    std::vector<Words> texts;
    for (const infty::Dialogue& dialogue : dialogues) {
      Words& words = texts.emplace_back();
      for (const std::string& turn : dialogue.turns) add_words(turn, words);
    }
    classes.push_back(split_texts(name_of(document), texts));
  }
  return passage_stream(s, seed, classes, fingerprint_of(s.dialogues), reading);
}

/// Which kind of article a passage is from: a class a kind (`articles_by_kind`), in the order of
/// --kinds. The first nine tenths of its articles are learned from, the others are for the test.
/// @throws infty::IoError for a file that can't be read; infty::ValueError as `passage_stream`
inline Stream article_stream(const Settings& s, std::uint64_t seed, bool reading) {
  const infty::MappedFile file(s.articles);
  const auto articles = articles_by_kind(file.text(), s.kinds);
  std::vector<TextClass> classes;
  for (std::size_t k = 0; k < articles.size(); ++k)
    classes.push_back(split_texts(s.kinds[k], articles[k]));
  return passage_stream(s, seed, classes, fingerprint_of(s.articles), reading);
}

}  // namespace lifelong
