// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/data/text.hpp>
#include <infty/data/vocabulary.hpp>
#include <infty/io/mapped_file.hpp>
#include <infty/lifelong/learn_stream.hpp>

#include "../support/fingerprint.hpp"
#include "settings.hpp"

namespace lifelong {

/// Tasks of texts in their order, all classes of which are known beforehand.
struct Stream {
  std::vector<infty::LifelongTask> tasks = {};
  Index vocabulary = 0;    ///< tokens; token 0 stands in front of every text
  Index classes = 0;       ///< of all tasks together
  Index longest = 0;       ///< tokens of a text, with the one in front
  std::string texts = {};  ///< a fingerprint of the texts that are given, their names and bytes
  Index first_word = 1;    ///< the first token that is a word
  std::vector<std::vector<Index>> reading = {};  ///< what an encoder may read beforehand: words
};

/// Puts elements in a drawn order.
template <class E>
void shuffle(std::vector<E>& all, infty::Random& random) {
  for (Index i = std::ssize(all) - 1; i > 0; --i)
    std::swap(all[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(random.below(i + 1))]);
}

/// Texts with known answers. A word tells the task, the class within it, or nothing; the words that
/// tell the class are those of all tasks, so that a class is known by two words: who has learned a
/// task by its class words alone has learned something else by the next. Chance is 1 / (tasks
/// classes); who counts the words is right whenever one of each kind is there.
inline Stream made_stream(const Settings& s, std::uint64_t seed) {
  Stream out{.vocabulary = 1 + s.tasks * s.topic_words + s.classes * s.class_words + s.fillers,
             .classes = s.tasks * s.classes,
             .longest = 1 + s.length};
  const Index class_begin = 1 + s.tasks * s.topic_words;
  const Index filler_begin = class_begin + s.classes * s.class_words;
  infty::Random random(seed, 10);
  for (Index t = 0; t < s.tasks; ++t) {
    infty::LifelongTask task{.name = "topic " + std::to_string(t + 1)};
    for (Index i = 0; i < s.training + s.test; ++i) {
      const Index c = random.below(s.classes);
      infty::Example example{.tokens = {0}, .labels = {t * s.classes + c}};
      for (Index word = 0; word < s.length; ++word) {
        const double kind = random.uniform();
        example.tokens.push_back(kind < s.topic_share
                                     ? 1 + t * s.topic_words + random.below(s.topic_words)
                                 : kind < s.topic_share + s.class_share
                                     ? class_begin + c * s.class_words + random.below(s.class_words)
                                     : filler_begin + random.below(s.fillers));
      }
      (i < s.training ? task.training : task.test).push_back(std::move(example));
    }
    out.tasks.push_back(std::move(task));
  }
  return out;
}

/// Which text of a folder a passage is from: a class a file, in the order of their names, `classes`
/// of them a task. A passage is so many words in a row; those to learn from are spread over the
/// first nine tenths of each text, and come in a drawn order, and those of the test over the last.
/// Words that are not among the `max_vocabulary` most frequent of these nine tenths are one token.
/// @param reading  whether these nine tenths are wanted, too, to be read beforehand
/// @throws infty::IoError for a folder without texts; infty::ValueError for a text that is too
/// short
inline Stream text_stream(const Settings& s, std::uint64_t seed, bool reading) {
  const auto files = infty::text_files(s.texts);
  const Index classes = std::ssize(files);
  const Index training = (s.training + s.classes - 1) / s.classes;  // of a class
  const Index test = (s.test + s.classes - 1) / s.classes;
  std::vector<infty::MappedFile> texts;
  std::vector<std::vector<std::string_view>> words;
  infty::TokenCounts counts;
  support::Fingerprint fingerprint;
  for (const auto& file : files) {
    texts.emplace_back(file);
    fingerprint.add_text(file.filename().string());
    fingerprint.add_text(texts.back().text());
    auto& own = words.emplace_back();
    infty::for_each_token(texts.back().text(), infty::TextUnit::word, [&](std::string_view word) {
      if (word != infty::end_of_line) own.push_back(word);
    });
    const Index needed = 10 * s.length * std::max((training + 8) / 9, test);
    infty::require(std::ssize(own) >= needed, "lifelong", file.string(), " has ", own.size(),
                   " words: ", needed,
                   " are needed; a smaller --training, --test or --length needs less");
    for (Index i = 0; i < std::ssize(own) / 10 * 9; ++i)
      counts.add(own[static_cast<std::size_t>(i)]);
  }
  const infty::Vocabulary vocabulary(counts, {.max_size = s.max_vocabulary});
  const Index unknown = vocabulary.find(infty::unknown_word).value();
  Stream out{.vocabulary = 1 + vocabulary.size(),
             .classes = classes,
             .longest = 1 + s.length,
             .texts = support::as_hex(fingerprint.bits())};
  for (Index c = 0; c < classes; ++c) {
    if (c % s.classes == 0) out.tasks.emplace_back();
    infty::LifelongTask& task = out.tasks.back();
    task.name +=
        (task.name.empty() ? "" : ", ") + files[static_cast<std::size_t>(c)].stem().string();
    const auto& own = words[static_cast<std::size_t>(c)];
    const Index tenth = std::ssize(own) / 10;
    const auto token = [&](Index word) {
      return 1 + vocabulary.find(own[static_cast<std::size_t>(word)]).value_or(unknown);
    };
    if (reading) {
      auto& read = out.reading.emplace_back();
      for (Index word = 0; word < 9 * tenth; ++word) read.push_back(token(word));
    }
    const auto passages = [&](Index begin, Index end, Index n, std::vector<infty::Example>& to) {
      for (Index i = 0; i < n; ++i) {
        infty::Example example{.tokens = {0}, .labels = {c}};
        for (Index at = begin + (end - begin) / n * i, word = 0; word < s.length; ++word)
          example.tokens.push_back(token(at + word));
        to.push_back(std::move(example));
      }
    };
    passages(0, 9 * tenth, training, task.training);
    passages(9 * tenth, 10 * tenth, test, task.test);
  }
  infty::Random random(seed, 11);
  for (infty::LifelongTask& task : out.tasks) shuffle(task.training, random);
  return out;
}

}  // namespace lifelong
