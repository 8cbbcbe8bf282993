// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stream.hpp"

namespace lifelong {

/// Words of a made question.
inline constexpr Index question_words = 4;

/// What there is to guess among: the spans of so many tokens.
constexpr Index spans_of(Index tokens) { return tokens * (tokens + 1) / 2; }

/// Questions with known answers. A task is a kind of question, and each kind has words of its own
/// to ask with, others that its answers begin with, and others that they end with. Behind the
/// question's `question_words` words stands a passage, in which an answer of every kind stands, of
/// 2 to `spans` words, in a drawn order between fillers; fillers are inside the answers, too. Who
/// finds answers but does not read the question is right once in as many questions as there are
/// kinds. Tokens are as `infty::span_example` has them.
/// @throws infty::ValueError unless `spans` >= 2, and a passage has room for all answers
inline Stream made_span_stream(const Settings& s, std::uint64_t seed) {
  const Index passage = s.length - question_words;
  infty::require(s.spans >= 2 && passage / s.tasks >= s.spans, "lifelong", "--spans is ", s.spans,
                 " and --length ", s.length, ": made answers have 2 words or more, and behind ",
                 question_words, " words of a question there must be room for one of each of ",
                 s.tasks, " kinds");
  const Index begins = 1 + s.tasks * s.topic_words, ends = begins + s.tasks * s.class_words,
              fillers = ends + s.tasks * s.class_words;
  Stream out{.vocabulary = fillers + s.fillers,
             .classes = spans_of(2 + s.length),
             .longest = 2 + s.length};
  infty::Random random(seed, 17);
  const auto filler = [&] { return fillers + random.below(s.fillers); };
  for (Index t = 0; t < s.tasks; ++t) {
    infty::LifelongTask task{.name = "kind " + std::to_string(t + 1)};
    for (Index i = 0; i < s.training + s.test; ++i) {
      infty::Example example{.tokens = {0}, .labels = {}};
      for (Index word = 0; word < question_words; ++word)
        example.tokens.push_back(1 + t * s.topic_words + random.below(s.topic_words));
      example.tokens.push_back(0);
      std::vector<Index> kinds, lengths;
      Index free = passage;
      for (Index kind = 0; kind < s.tasks; ++kind) {
        kinds.push_back(kind);
        lengths.push_back(2 + random.below(s.spans - 1));
        free -= lengths.back();
      }
      shuffle(kinds, random);
      // Which of the places of answers and of single fillers are answers', drawn evenly.
      for (Index left = s.tasks; left > 0 || free > 0;) {
        if (random.below(left + free) >= left) {
          example.tokens.push_back(filler());
          --free;
          continue;
        }
        const Index kind = kinds[static_cast<std::size_t>(--left)];
        const Index length = lengths[static_cast<std::size_t>(kind)];
        const Index first = std::ssize(example.tokens);
        if (kind == t) example.labels = {first, first + length - 1};
        example.tokens.push_back(begins + kind * s.class_words + random.below(s.class_words));
        for (Index inner = 2; inner < length; ++inner) example.tokens.push_back(filler());
        example.tokens.push_back(ends + kind * s.class_words + random.below(s.class_words));
      }
      (i < s.training ? task.training : task.test).push_back(std::move(example));
    }
    out.tasks.push_back(std::move(task));
  }
  return out;
}

}  // namespace lifelong
