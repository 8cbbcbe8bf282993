// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

#include <infty/data/text.hpp>
#include <infty/data/text_question.hpp>
#include <infty/lifelong/example.hpp>

namespace infty {

/// What a `SpanHead` learns of a question: the token in front, the words of the question, the token
/// in front again, and the words of the text; as labels the first and the last word that the answer
/// is a part of. Line ends are no words.
/// @param context  the text of the question
/// @param front    token that stands in front of both
/// @param token    token of a word
/// @param longest  tokens at most: a text that is longer is cut there
/// @return  nothing where the answer does not stand within so many tokens, or has no word
template <std::invocable<std::string_view> Token>
std::optional<Example> span_example(const TextQuestion& question, std::string_view context,
                                    Index front, Token&& token, Index longest) {
  Example out{.tokens = {front}, .labels = {}};
  const auto each_word = [](std::string_view text, auto&& see) {
    for_each_token(text, TextUnit::word, [&](std::string_view word) {
      if (word != end_of_line) see(word);
    });
  };
  each_word(question.question, [&](std::string_view word) { out.tokens.push_back(token(word)); });
  out.tokens.push_back(front);
  Index first = -1, last = -1;
  each_word(context, [&](std::string_view word) {
    const auto begin = static_cast<std::size_t>(word.data() - context.data());
    if (begin < question.end && begin + word.size() > question.begin) {
      last = std::ssize(out.tokens);
      if (first < 0) first = last;
    }
    out.tokens.push_back(token(word));
  });
  if (first < 0 || last >= longest) return std::nullopt;
  out.tokens.resize(static_cast<std::size_t>((std::min)(std::ssize(out.tokens), longest)));
  out.labels = {first, last};
  return out;
}

}  // namespace infty
