// SPDX-License-Identifier: MIT
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <infty/data/labelled_text.hpp>
#include <infty/data/relation_mention.hpp>
#include <infty/data/relation_names.hpp>
#include <infty/data/text_question.hpp>
#include <infty/data/trivia_question.hpp>

#include "fuzz/fuzz.hpp"

// Any bytes as a file of each published set: it is refused or read, and what was read is within
// what it says.

namespace infty::fuzz {

void run(std::string_view bytes) {
  const MemoryFile file(bytes);
  accepted([&] {
    std::size_t all = 0;
    for (const LabelledText& one : read_labelled_texts(file.path())) {
      check(one.label >= 0 && one.label < 1'000'000, "a label is in its range");
      all += one.text.size();
    }
    check(all <= bytes.size(), "texts are no longer than the file");
  });
  accepted([&] {
    const TextQuestions all = read_text_questions(file.path());
    for (const TextQuestion& one : all.questions)
      check(one.begin < one.end && one.end <= all.contexts.at(one.context).size(),
            "an answer stands in its text");
  });
  accepted([&] {
    for (const RelationMention& one : read_relation_mentions(file.path()))
      for (const auto* entity : {&one.head, &one.tail})
        for (const auto& places : entity->places)
          for (const Index place : places)
            check(place >= 0 && place < std::ssize(one.tokens), "a word is in its sentence");
  });
  accepted([&] {
    for (const auto& [relation, own] : read_relation_names(file.path()))
      check(!own.name.empty() && own.name.size() <= bytes.size(), "a relation has a name");
  });
  accepted([&] {
    const TextQuestions all = read_trivia_questions(file.path(), {});
    check(all.contexts.empty() && all.questions.empty(), "without evidence nothing is read");
  });
  // The first lines as names of what is looked for in the whole.
  std::vector<std::string> names;
  for (std::size_t at = 0; at < bytes.size() && names.size() < 4; at = names.size() * 3)
    names.emplace_back(bytes.substr(at, 1 + names.size()));
  if (const auto found = detail::find_name(bytes, names))
    check(found->first < found->second && found->second <= bytes.size(), "a name is in the text");
  check(detail::first_words(bytes, 3).size() <= bytes.size(), "words are in the text");
}

std::vector<std::string> seeds() {
  return {
      "\"3\",\"a \"\"b\"\"\",\"c\\nd\"\r\n1,a,b\n",
      R"({"version": "1", "data": [{"title": "é", "paragraphs": [{"context": "é ab", "qas": [{"id": "1",
          "question": "b?", "answers": [{"text": "ab", "answer_start": 2}]}]}]}]})",
      R"({"P1": [{"tokens": ["a", "b"], "h": ["a", "Q1", [[0]]], "t": ["b", "Q2", [[1], [0, 1]]]}]})",
      R"({"P1": ["head of it", "é"]})",
      R"({"Data": [{"Question": "q", "Answer": {"Value": "a", "Aliases": ["b"]},
          "EntityPages": [{"Filename": "a/b.txt"}], "SearchResults": []}]})"};
}

}  // namespace infty::fuzz
