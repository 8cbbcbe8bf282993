// SPDX-License-Identifier: MIT
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <infty/data/labelled_text.hpp>
#include <infty/data/relation_mention.hpp>
#include <infty/data/text_question.hpp>

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
}

std::vector<std::string> seeds() {
  return {
      "\"3\",\"a \"\"b\"\"\",\"c\\nd\"\r\n1,a,b\n",
      R"({"version": "1", "data": [{"title": "é", "paragraphs": [{"context": "é ab", "qas": [{"id": "1",
          "question": "b?", "answers": [{"text": "ab", "answer_start": 2}]}]}]}]})",
      R"({"P1": [{"tokens": ["a", "b"], "h": ["a", "Q1", [[0]]], "t": ["b", "Q2", [[1], [0, 1]]]}]})"};
}

}  // namespace infty::fuzz
