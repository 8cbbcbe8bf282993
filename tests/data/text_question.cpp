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

TEST_CASE("read_text_questions: places far into a text, in any order, and just behind its end") {
  const std::vector<std::string> characters{"a", "é", "€", "😀", "z"};
  for (const std::size_t length : {1023U, 1024U, 1025U, 5000U}) {
    std::string context;
    std::vector<std::size_t> begins;
    for (std::size_t i = 0; i < length; ++i) {
      begins.push_back(context.size());
      context += characters[i * i % 7 % 5];
    }
    begins.push_back(context.size());
    std::vector<std::size_t> starts{length, length - 1, 0, 2 * length, 1023, 1024, length + 1};
    for (std::size_t i = 0; i < 200; ++i) starts.push_back(i * 7919 % length);
    std::string questions;
    std::vector<std::size_t> wanted;
    for (const std::size_t start : starts) {
      const bool there = start < length;
      if (there) wanted.push_back(begins[start]);
      questions += std::string(questions.empty() ? "" : ", ") +
                   R"({"question": "", "answers": [{"answer_start": )" + std::to_string(start) +
                   R"(, "text": ")" +
                   (there ? context.substr(begins[start], begins[start + 1] - begins[start])
                          : std::string("a")) +
                   R"("}]})";
    }
    const auto all = text_question::read(R"({"data": [{"paragraphs": [{"context": ")" + context +
                                         R"(", "qas": [)" + questions + "]}]}]}");
    std::vector<std::size_t> found;
    for (const auto& one : all.questions) found.push_back(one.begin);
    CAPTURE(length);
    CHECK(found == wanted);
    CHECK(all.misplaced == std::ssize(starts) - std::ssize(wanted));
  }
}

// Which took minutes where each question walked the text from its beginning.
TEST_CASE("read_text_questions: many questions about the end of a long text") {
  constexpr std::size_t length = 3'000'000, count = 4'000;
  std::string questions;
  for (std::size_t i = 0; i < count; ++i)
    questions += std::string(i > 0 ? "," : "") +
                 R"({"question":"","answers":[{"text":"x","answer_start":)" +
                 std::to_string(length - 1 - i) + "}]}";
  const auto all =
      text_question::read(R"({"data":[{"paragraphs":[{"context":")" + std::string(length, 'x') +
                          R"(","qas":[)" + questions + "]}]}]}");
  REQUIRE(all.questions.size() == count);
  for (std::size_t i = 0; i < count; ++i) REQUIRE(all.questions[i].begin == length - 1 - i);
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
