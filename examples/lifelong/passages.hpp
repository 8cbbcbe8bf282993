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

#include "stream.hpp"

namespace lifelong {

/// A text as its words, ends of lines left out.
using Words = std::vector<std::string_view>;

/// What a class is known by: texts to learn from, and others for the test.
struct TextClass {
  std::string name = {};             ///< what the task is called by
  std::vector<Words> training = {};  ///< none of which the test sees
  std::vector<Words> test = {};      ///< none of which is learned
};

/// Appends the words of a text.
inline void add_words(std::string_view text, Words& words) {
  infty::for_each_token(text, infty::TextUnit::word, [&](std::string_view word) {
    if (word != infty::end_of_line) words.push_back(word);
  });
}

/// Gives a class its texts: the first nine tenths of them to learn from, the others for the test.
inline TextClass split_texts(std::string name, const std::vector<Words>& texts) {
  const auto learned = texts.begin() + std::ssize(texts) * 9 / 10;
  return {std::move(name), {texts.begin(), learned}, {learned, texts.end()}};
}

/// Takes `n` passages of `length` words, spread evenly over the texts behind each other. One that
/// would leave its text ends with it; a text that is shorter is a passage as a whole.
inline std::vector<Words> spread_passages(const std::vector<Words>& texts, Index n, Index length) {
  Index words = 0, begin = 0;
  for (const Words& text : texts) words += std::ssize(text);
  std::vector<Words> out;
  auto text = texts.begin();
  for (Index i = 0; i < n; ++i) {
    const Index at = words / n * i;
    for (; at >= begin + std::ssize(*text); ++text) begin += std::ssize(*text);
    const Index own = std::min(length, static_cast<Index>(std::ssize(*text)));
    const auto first = text->begin() + std::min(at - begin, std::ssize(*text) - own);
    out.emplace_back(first, first + own);
  }
  return out;
}

/// Which class a passage is of, `classes` of them a task in their order. A passage is so many words
/// in a row of one text (`spread_passages`); those to learn from come in a drawn order. Words that
/// are not among the `max_vocabulary` most frequent of what there is to learn from are one token.
/// @param texts    the fingerprint of what the words were read from
/// @param reading  whether all there is to learn from is wanted, too, to be read beforehand
/// @throws infty::ValueError for a class with fewer words than its passages have
inline Stream passage_stream(const Settings& s, std::uint64_t seed,
                             const std::vector<TextClass>& classes, std::string texts,
                             bool reading) {
  const Index training = (s.training + s.classes - 1) / s.classes;  // of a class
  const Index test = (s.test + s.classes - 1) / s.classes;
  infty::TokenCounts counts;
  for (const TextClass& own : classes) {
    const auto words = [](const std::vector<Words>& all) {
      Index sum = 0;
      for (const Words& text : all) sum += std::ssize(text);
      return sum;
    };
    infty::require(words(own.training) >= training * s.length && words(own.test) >= test * s.length,
                   "lifelong", own.name, " has ", words(own.training), " words to learn from and ",
                   words(own.test), " for the test: ", training * s.length, " and ",
                   test * s.length,
                   " are needed; a smaller --training, --test or --length needs less");
    for (const Words& text : own.training)
      for (const std::string_view word : text) counts.add(word);
  }
  const infty::Vocabulary vocabulary(counts, {.max_size = s.max_vocabulary});
  const Index unknown = vocabulary.find(infty::unknown_word).value();
  const auto add_tokens = [&](const Words& words, std::vector<Index>& to) {
    for (const std::string_view word : words)
      to.push_back(1 + vocabulary.find(word).value_or(unknown));
  };
  Stream out{.vocabulary = 1 + vocabulary.size(),
             .classes = std::ssize(classes),
             .longest = 1 + s.length,
             .texts = std::move(texts)};
  for (Index c = 0; c < out.classes; ++c) {
    const TextClass& own = classes[static_cast<std::size_t>(c)];
    if (c % s.classes == 0) out.tasks.emplace_back();
    infty::LifelongTask& task = out.tasks.back();
    task.name += (task.name.empty() ? "" : ", ") + own.name;
    if (reading)
      for (const Words& text : own.training) add_tokens(text, out.reading.emplace_back());
    const auto passages = [&](const std::vector<Words>& of, Index n,
                              std::vector<infty::Example>& to) {
      for (const Words& words : spread_passages(of, n, s.length)) {
        infty::Example example{.tokens = {0}, .labels = {c}};
        add_tokens(words, example.tokens);
        to.push_back(std::move(example));
      }
    };
    passages(own.training, training, task.training);
    passages(own.test, test, task.test);
  }
  infty::Random random(seed, 11);
  for (infty::LifelongTask& task : out.tasks) shuffle(task.training, random);
  return out;
}

}  // namespace lifelong
