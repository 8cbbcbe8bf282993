// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>

namespace infty {

/// A question about a text, whose answer stands in it.
struct TextQuestion {
  std::size_t context = 0;         ///< which of the texts
  std::string question;            ///< about it
  std::size_t begin = 0, end = 0;  ///< bytes [begin, end) of the text are the answer
};

/// The questions of a file.
struct TextQuestions {
  std::vector<std::string> contexts = {};    ///< the texts
  std::vector<TextQuestion> questions = {};  ///< those that have an answer
  Index unanswered = 0;                      ///< others, that were left out
  Index misplaced = 0;  ///< left out, too: their answer does not stand where the file says
};

namespace detail {

/// Where the characters of a UTF-8 text begin, which is walked once, and then a little for each
/// that is asked for.
class CharacterPlaces {
 public:
  /// @param text  must outlive this
  explicit CharacterPlaces(std::string_view text) : text_(text) {
    std::size_t at = 0;
    for (std::uint64_t n = 0;; ++n) {
      if (n % step == 0) places_.push_back(at);
      if (at >= text.size()) break;
      at = behind(at);
    }
  }

  /// The first byte of character number n, the text's length for n characters; npos if it has less.
  std::size_t byte_of(std::uint64_t n) const {
    if (n / step >= places_.size()) return text_.npos;
    std::size_t at = places_[n / step];
    for (n %= step; n > 0 && at < text_.size(); --n) at = behind(at);
    return n > 0 ? text_.npos : at;
  }

 private:
  static constexpr std::uint64_t step = 1024;

  std::size_t behind(std::size_t at) const {
    return at + (std::max)(std::size_t{1}, utf8_sequence(text_.substr(at)));
  }

  std::string_view text_;
  std::vector<std::size_t> places_;  ///< of characters 0, step, 2 step, ...
};

/// Takes SQuAD's JSON apart.
class QuestionReader {
 public:
  QuestionReader(std::string_view text, std::string_view where) : json_(text, where) {}

  TextQuestions read() {
    bool any = false;
    json_.object([&](const std::string& key) {
      if (key != "data") return pass();
      any = true;
      json_.array([&] { article(); });
    });
    json_.finish();
    if (!any) json_.fail("there is no \"data\"");
    return std::move(out_);
  }

 private:
  struct Asked {
    std::string question, answer;
    std::uint64_t start = 0;
    bool answered = false;
  };

  void pass() { json_.raw(); }

  void article() {
    json_.object([&](const std::string& key) {
      if (key != "paragraphs") return pass();
      json_.array([&] { paragraph(); });
    });
  }

  void paragraph() {
    std::string context;
    std::vector<Asked> asked;  // which may come before the text that they are about
    int contexts = 0;
    json_.object([&](const std::string& key) {
      if (key == "context") {
        context = json_.string();
        ++contexts;
      } else if (key == "qas") {
        json_.array([&] { asked.push_back(question()); });
      } else {
        pass();
      }
    });
    if (contexts != 1) json_.fail("a paragraph has ", contexts, " contexts: it must have one");
    const CharacterPlaces places(context);
    for (Asked& one : asked) {
      const std::size_t begin = places.byte_of(one.start);
      if (!one.answered)
        ++out_.unanswered;
      else if (one.answer.empty() || begin == context.npos ||
               std::string_view(context).substr(begin, one.answer.size()) != one.answer)
        ++out_.misplaced;
      else
        out_.questions.push_back(
            {out_.contexts.size(), std::move(one.question), begin, begin + one.answer.size()});
    }
    out_.contexts.push_back(std::move(context));
  }

  Asked question() {
    Asked out;
    int questions = 0;
    json_.object([&](const std::string& key) {
      if (key == "question") {
        out.question = json_.string();
        ++questions;
      } else if (key == "answers") {
        json_.array([&] { answer(out); });
      } else {
        pass();
      }
    });
    if (questions != 1) json_.fail("there are ", questions, " questions where one is needed");
    return out;
  }

  /// Takes an answer, and keeps the first.
  void answer(Asked& of) {
    std::string text;
    std::uint64_t start = 0;
    int texts = 0, starts = 0;
    json_.object([&](const std::string& key) {
      if (key == "text") {
        text = json_.string();
        ++texts;
      } else if (key == "answer_start") {
        start = json_.integer();
        ++starts;
      } else {
        pass();
      }
    });
    if (texts != 1 || starts != 1)
      json_.fail("an answer has ", texts, " \"text\" and ", starts,
                 " \"answer_start\": it must have one of each");
    if (of.answered) return;
    of.answer = std::move(text);
    of.start = start;
    of.answered = true;
  }

  JsonReader json_;
  TextQuestions out_;
};

}  // namespace detail

/// Reads a file of questions as SQuAD's are [Rajpurkar et al. 2016]: QuAC's, and TriviaQA's as its
/// program converts them, are the same for what is read of it,
/// {"data": [{"paragraphs": [{"context", "qas": [{"question", "answers": [{"text",
/// "answer_start"}]}]}]}]}, in which a start is a number of characters. What else stands in it is
/// passed over. Of several answers the first is taken.
/// @throws infty::IoError that names the byte of what is no such JSON
inline TextQuestions read_text_questions(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string where = path.string();
  return detail::QuestionReader(file.text(), where).read();
}

}  // namespace infty
