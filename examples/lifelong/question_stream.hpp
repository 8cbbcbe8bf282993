// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/data/text_question.hpp>
#include <infty/data/trivia_question.hpp>
#include <infty/data/vocabulary.hpp>
#include <infty/lifelong/span_example.hpp>

#include "../support/fingerprint.hpp"
#include "span_stream.hpp"

namespace lifelong {

/// Files of a published set of questions, in its folder.
struct QuestionFiles {
  /// Folder of TriviaQA's documents, and which kind of them these are.
  struct Evidence {
    const char* folder;
    std::filesystem::path infty::TriviaEvidence::*kind;
  };

  const char* training;
  const char* test;
  std::optional<Evidence> evidence = {};  ///< none: a file as SQuAD's
};

/// The sets that are known by their files.
inline constexpr std::array<QuestionFiles, 5> question_files{{
    {"train-v1.1.json", "dev-v1.1.json"},
    {"train-v2.0.json", "dev-v2.0.json"},
    {"train_v0.2.json", "val_v0.2.json"},
    {"qa/wikipedia-train.json", "qa/wikipedia-dev.json",
     QuestionFiles::Evidence{"evidence/wikipedia", &infty::TriviaEvidence::wikipedia}},
    {"qa/web-train.json", "qa/web-dev.json",
     QuestionFiles::Evidence{"evidence/web", &infty::TriviaEvidence::web}},
}};

/// The questions of a folder, to learn and to be asked.
/// @throws infty::IoError for a folder without the files of a set, and what their readers throw
inline std::pair<infty::TextQuestions, infty::TextQuestions> read_questions(
    const std::filesystem::path& folder) {
  std::string known;
  for (const QuestionFiles& set : question_files) {
    known += std::string(known.empty() ? "" : ", ") + set.training;
    if (!std::filesystem::exists(folder / set.training)) continue;
    const auto read = [&](const char* name) {
      if (!set.evidence) return infty::read_text_questions(folder / name);
      infty::TriviaEvidence evidence;
      evidence.*set.evidence->kind = folder / set.evidence->folder;
      return infty::read_trivia_questions(folder / name, evidence);
    };
    return {read(set.training), read(set.test)};
  }
  infty::raise<infty::IoError>("lifelong", folder.string(),
                               ": there is no file of questions in it, one of ", known);
}

/// A task a folder of --sets, of questions whose answer is a span of a text (`question_files`): so
/// many of each file, drawn by the seed, or all that there are. An example is the words of the
/// question and of the text, `length` of them together; questions whose answer does not stand
/// within these are passed over, those of the test, too. Words that are not among the
/// `max_vocabulary` most frequent of all texts and questions to learn from are one token.
/// @throws infty::IoError as `read_questions`, or for a set of which no question is left
inline Stream question_stream(const Settings& s, std::uint64_t seed) {
  std::vector<std::pair<infty::TextQuestions, infty::TextQuestions>> sets;
  support::Fingerprint fingerprint;
  infty::TokenCounts counts;
  const auto count_words = [&](std::string_view text) {
    infty::for_each_token(text, infty::TextUnit::word, [&](std::string_view word) {
      if (word != infty::end_of_line) counts.add(word);
    });
  };
  for (const std::string& folder : s.sets) {
    const auto& [training, test] = sets.emplace_back(read_questions(folder));
    for (const infty::TextQuestions* const part : {&training, &test}) {
      for (const std::string& text : part->contexts) fingerprint.add_text(text);
      for (const infty::TextQuestion& one : part->questions) {
        fingerprint.add_text(one.question);
        for (const std::size_t n : {one.context, one.begin, one.end}) fingerprint.add(n);
      }
    }
    for (const std::string& text : training.contexts) count_words(text);
    for (const infty::TextQuestion& one : training.questions) count_words(one.question);
  }
  const infty::Vocabulary vocabulary(counts, {.max_size = s.max_vocabulary});
  const Index unknown = vocabulary.find(infty::unknown_word).value();
  const auto token = [&](std::string_view word) {
    return 1 + vocabulary.find(word).value_or(unknown);
  };
  Stream out{.vocabulary = 1 + vocabulary.size(),
             .classes = spans_of(2 + s.length),
             .longest = 2 + s.length,
             .texts = support::as_hex(fingerprint.bits())};
  infty::Random random(seed, 18);
  for (std::size_t t = 0; t < sets.size(); ++t) {
    const auto draw = [&](const infty::TextQuestions& from, Index wanted) {
      std::vector<std::size_t> order(from.questions.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      shuffle(order, random);
      std::vector<infty::Example> examples;
      for (std::size_t i = 0; i < order.size() && std::ssize(examples) < wanted; ++i) {
        const infty::TextQuestion& one = from.questions[order[i]];
        if (auto example =
                infty::span_example(one, from.contexts[one.context], 0, token, out.longest))
          examples.push_back(std::move(*example));
      }
      infty::require<infty::IoError>(!examples.empty(), "lifelong", s.sets[t],
                                     ": no answer stands within ", s.length,
                                     " words of question and text; a larger --length reads more");
      return examples;
    };
    const auto folder = std::filesystem::path(s.sets[t] + '/').lexically_normal().parent_path();
    out.tasks.push_back({folder.filename().string(), draw(sets[t].first, s.training),
                         draw(sets[t].second, s.test)});
  }
  return out;
}

}  // namespace lifelong
