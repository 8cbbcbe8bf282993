// SPDX-License-Identifier: MIT
#include <string>
#include <utility>
#include <vector>

#include <infty/data/text_question.hpp>

#include "data/refusal.hpp"
#include "support/catch.hpp"

namespace text_question {

infty::TextQuestions read(const std::string& bytes) {
  return infty::tests::read_bytes("train.json", bytes, infty::read_text_questions);
}

std::string refused(const std::string& bytes) {
  return infty::tests::refusal("train.json", bytes, infty::read_text_questions);
}

}  // namespace text_question

TEST_CASE("read_text_questions: questions, texts, and where answers stand, in characters") {
  const auto all = text_question::read(R"({"version": "1.1", "data": [
    {"title": "Zoé", "paragraphs": [
      {"context": "Zoé lived in Łódź, Poland.", "qas": [
        {"id": "1", "question": "Who?", "answers": [{"answer_start": 0, "text": "Zoé"},
                                                    {"answer_start": 1, "text": "oé"}]},
        {"id": "2", "question": "Where?", "answers": [{"answer_start": 13, "text": "Łódź"}]}]},
      {"qas": [
        {"answers": [{"text": "b\u00e9", "answer_start": 2, "score": -1.5}], "question": "What?"},
        {"question": "When?", "is_impossible": true, "answers": []},
        {"question": "Where?", "answers": [{"answer_start": 1, "text": "bé"}]},
        {"question": "Where?", "answers": [{"answer_start": 3, "text": "éb"}]},
        {"question": "Where?", "answers": [{"answer_start": 18446744073709551615, "text": "a"}]},
        {"question": "Where?", "answers": [{"answer_start": 0, "text": ""}]}],
       "context": "a bé"}]},
    {"paragraphs": []}, {}]})");
  CHECK(all.contexts == std::vector<std::string>{"Zoé lived in Łódź, Poland.", "a bé"});
  CHECK(all.unanswered == 1);
  CHECK(all.misplaced == 4);
  REQUIRE(all.questions.size() == 3);
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& one : all.questions)
    found.emplace_back(one.question,
                       all.contexts.at(one.context).substr(one.begin, one.end - one.begin));
  CHECK(found == std::vector<std::pair<std::string, std::string>>{
                     {"Who?", "Zoé"}, {"Where?", "Łódź"}, {"What?", "bé"}});
  CHECK(text_question::read(R"({"data": []})").questions.empty());
}

TEST_CASE("read_text_questions: what is none is refused with the file and the byte") {
  using text_question::refused;
  const auto with = [](const std::string& paragraph) {
    return R"({"data": [{"paragraphs": [)" + paragraph + "]}]}";
  };
  for (const auto& [bytes, said] : std::vector<std::pair<std::string, std::string>>{
           {"", "train.json: byte 0: expected an object"},
           {"[]", "expected an object"},
           {"{}", "there is no \"data\""},
           {R"({"data": {}})", "expected an array"},
           {R"({"data": []} x)", "something follows"},
           {with(R"({"qas": []})"), "a paragraph has 0 contexts"},
           {with(R"({"context": "a", "context": "b"})"), "a paragraph has 2 contexts"},
           {with(R"({"context": 7})"), "expected a string"},
           {with(R"({"context": "a", "qas": [{"answers": []}]})"), "there are 0 questions"},
           {with(R"({"context": "a", "qas": [{"question": "b", "answers": [{"text": "a"}]}]})"),
            "an answer has 1 \"text\" and 0 \"answer_start\""},
           {with(R"({"context": "a", "qas": [{"question": "b",
               "answers": [{"text": "a", "answer_start": -1}]}]})"),
            "expected an unsigned integer"},
           {with("{\"context\": \"\xff\"}"), "invalid UTF-8"},
           {std::string(100'000, '['), "byte"},
           {R"({"data": [{"x": )" + std::string(100'000, '['), "nested too deeply"}})
    CHECK_THAT(refused(bytes), Catch::Contains(said));
  const std::string whole =
      with(R"({"context": "ab", "qas": [{"question": "b", "answers": [{"text": "a",
        "answer_start": 0}]}]})");
  CHECK(refused(whole).empty());
  for (std::size_t n = 0; n < whole.size(); ++n) CHECK_FALSE(refused(whole.substr(0, n)).empty());
  const infty::tests::TemporaryFolder folder;
  CHECK_THROWS_AS(infty::read_text_questions(folder / "none.json"), infty::IoError);
}
