// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <infty/lifelong/learn_stream.hpp>

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

}  // namespace lifelong
