// SPDX-License-Identifier: MIT
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <infty/data/trivia_question.hpp>

#include "data/refusal.hpp"
#include "support/catch.hpp"

namespace trivia_question {

/// What is read of a file with this folder of evidence.
infty::TextQuestions read(const std::string& bytes, const infty::tests::TemporaryFolder& folder,
                          infty::TriviaEvidence evidence) {
  infty::tests::write_text(folder / "qa.json", bytes);
  if (!evidence.wikipedia.empty()) evidence.wikipedia = folder / evidence.wikipedia.string();
  if (!evidence.web.empty()) evidence.web = folder / evidence.web.string();
  return infty::read_trivia_questions(folder / "qa.json", evidence);
}

std::string refused(const std::string& bytes) {
  return infty::tests::refusal("qa.json", bytes, [](const std::filesystem::path& path) {
    return infty::read_trivia_questions(path, {.wikipedia = path.parent_path()});
  });
}

/// A question about documents of these names, which stand in JSON.
std::string about(const std::string& documents) {
  return R"({"Data": [{"Question": "q", "Answer": {"Value": "a"}, "EntityPages": )" + documents +
         "}]}";
}

}  // namespace trivia_question

TEST_CASE("read_trivia_questions: an answer is where one of its names stands first") {
  const infty::tests::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "wiki");
  std::filesystem::create_directories(folder / "web/35");
  infty::tests::write_text(folder / "wiki/Big_Ben.txt",
                           "Sunsets are seen; the SUN and the Sun King too.\nsun king");
  infty::tests::write_text(folder / "web/35/1.txt", "nothing here of him, Louis XIV.");
  infty::tests::write_text(folder / "web/35/2.txt", "");
  const std::string bytes = R"({"Domain": "Web", "Data": [
    {"SearchResults": [{"Filename": "35/1.txt", "Rank": 1, "Title": "x"}, {"Filename": "35/2.txt"}],
     "EntityPages": [{"DocSource": "TagMe", "Filename": "Big_Ben.txt"}],
     "Answer": {"Aliases": ["The Sun King", "Louis XIV"], "MatchedWikiEntityName": "",
                "NormalizedAliases": ["sun", "sun king"], "Type": "WikipediaEntity", "Value": ""},
     "Question": "Who said it?", "QuestionId": "tc_1"},
    {"Question": "And where?", "Answer": {"Value": "seen"},
     "EntityPages": [{"Filename": "Big_Ben.txt"}]},
    {"Question": "Why?", "EntityPages": [{"Filename": "Big_Ben.txt"}]}], "Version": 1.0})";
  const auto all = trivia_question::read(bytes, folder, {.wikipedia = "wiki", .web = "web"});
  REQUIRE(all.contexts.size() == 3);
  REQUIRE(all.questions.size() == 3);
  const auto answer = [&](std::size_t i) {
    const auto& q = all.questions[i];
    return all.contexts[q.context].substr(q.begin, q.end - q.begin);
  };
  CHECK(all.questions[0].question == "Who said it?");
  CHECK(answer(0) == "Louis XIV");
  CHECK(answer(1) == "SUN");  // Sunsets are no sun, and `the Sun King` comes behind
  CHECK(all.questions[1].begin == 22);
  CHECK(answer(2) == "seen");
  CHECK(all.questions[2].context == all.questions[1].context);
  CHECK(all.unanswered == 2);  // an empty document, and a question without an answer
  CHECK(all.misplaced == 0);

  // Of each document so many words, and of one folder alone.
  const auto less = trivia_question::read(bytes, folder, {.wikipedia = "wiki", .words = 2});
  CHECK(less.contexts == std::vector<std::string>{"Sunsets are"});
  CHECK(less.questions.empty());
  CHECK(less.unanswered == 3);
  CHECK(trivia_question::read(bytes, folder, {}).contexts.empty());
}

TEST_CASE("read_trivia_questions: the longest of the names that stand there") {
  const infty::tests::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "wiki");
  infty::tests::write_text(folder / "wiki/a", "x the sun king, (caf\xC3\xA9) cafe");
  const auto found = [&](const std::string& aliases) {
    const auto all =
        trivia_question::read(R"({"Data": [{"Question": "q", "Answer": {"Aliases": )" + aliases +
                                  R"(}, "EntityPages": [{"Filename": "a"}]}]})",
                              folder, {.wikipedia = "wiki"});
    if (all.questions.empty()) return std::string("none");
    return all.contexts[0].substr(all.questions[0].begin,
                                  all.questions[0].end - all.questions[0].begin);
  };
  CHECK(found(R"(["sun", "Sun King", "sun k"])") == "sun king");
  CHECK(found(R"(["Sun King", "sun"])") == "sun king");
  CHECK(found(R"(["king", "sun"])") == "sun");
  CHECK(found(R"(["caf"])") == "none");  // an accent is a part of the word
  CHECK(found(R"(["Cafe"])") == "cafe");
  CHECK(found(R"(["(", ""])") == "(");
  CHECK(found("[]") == "none");
}

TEST_CASE("read_trivia_questions: hostile files are refused with the file and the byte") {
  using trivia_question::about, trivia_question::refused;
  CHECK(refused(about("[]")).empty());
  for (const auto& [bytes, said] : std::vector<std::pair<std::string, std::string>>{
           {"", "qa.json: byte 0: expected an object"},
           {"{}", "there is no \"Data\""},
           {R"({"Data": {}})", "expected an array"},
           {R"({"Data": [{}]})", "there are 0 questions"},
           {R"({"Data": [{"Question": "a", "Question": "b"}]})", "there are 2 questions"},
           {R"({"Data": [{"Question": 1}]})", "expected a string"},
           {R"({"Data": [{"Question": "q", "Answer": "a"}]})", "expected an object"},
           {about("{}"), "expected an array"},
           {about("[{}]"), "a document has 0 \"Filename\""},
           {about(R"([{"Filename": "../qa.json"}])"), "'../qa.json' is no file in the folder"},
           {about(R"([{"Filename": "a/../../b"}])"), "is no file in the folder"},
           {about(R"([{"Filename": "/etc/hostname"}])"), "is no file in the folder"},
           {about(R"([{"Filename": ""}])"), "is no file in the folder"},
           {about(R"([{"Filename": "a\u0000b"}])"), "is no file in the folder"},
           {about(R"([{"Filename": "nowhere.txt"}])"), "nowhere.txt"},
           {about("[]").substr(0, 40), "byte "}})
    CHECK_THAT(refused(bytes), Catch::Contains(said));
  const infty::tests::TemporaryFolder folder;
  CHECK_THROWS_WITH(trivia_question::read("{}", folder, {.words = 0}),
                    Catch::Contains("words is 0"));
}
