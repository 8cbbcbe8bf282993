// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>

#include "../support/need.hpp"
#include "text_streams.hpp"

namespace lifelong {

/// Bytes that a run needs, about: texts and those that the memory holds, the parameters with their
/// gradients, moments and copies, and what the largest batch keeps for the way back; or what
/// reading beforehand needs, if it is more.
inline double bytes_of(const Settings& s) {
  const auto number = [](Index n) { return static_cast<double>(n); };
  // Of a sentence with its candidates each pair is read, whose names are short.
  const double pairs = 1 + number(s.candidates);
  const double tokens = number(s.length) + 1 +
                        (s.candidates > 0 ? 8
                         : s.spans > 0    ? 1
                                          : 0),
               width = number(s.width), inner = number(s.feed_forward);
  // A text, a document or a kind a class: what there are of them say how many tasks.
  const double classes = s.spans > 0 && s.sets.empty() ? number(s.tasks) * number(s.classes)
                         : !s.sets.empty()  ? number(std::ssize(s.sets)) * number(s.classes)
                         : !s.texts.empty() ? number(std::ssize(infty::text_files(s.texts)))
                         : !s.dialogues.empty()
                             ? number(std::ssize(dialogues_by_document(s.dialogues)))
                         : !s.articles.empty() ? number(std::ssize(s.kinds))
                                               : number(s.tasks) * number(s.classes);
  const double tasks = std::ceil(classes / number(s.classes));
  const bool made = s.texts.empty() && s.dialogues.empty() && s.articles.empty() &&
                    s.sets.empty() && s.relations.empty();
  const double words =
      made ? tasks * number(s.topic_words) +
                 number(s.spans > 0 ? 2 * s.tasks : s.classes) * number(s.class_words) +
                 number(s.fillers)
           : number(s.max_vocabulary);
  const double texts =
      pairs * 2 * tasks * (number(s.training) + number(s.test)) * tokens * sizeof(Index);
  const double parameters = (words + tokens + classes) * width +
                            number(s.layers) * (4 * width * width + 2 * width * inner);
  // No more is drawn at a time than the memory holds; neighbours of several may be the same ones.
  const double held = std::min(tasks * number(s.training), number(s.memory.capacity));
  const double together = number(std::min(s.together, std::max(s.batch, s.replay.drawn())));
  const double rows =
      pairs * std::max({number(s.batch), number(s.test),
                        std::min(number(std::max(s.agem_sample, s.replay.drawn())), held),
                        std::min(number(s.adaptation.neighbours), held) * together});
  const auto of_rows = [&](double n) {
    return n * tokens * number(s.layers) * (12 * width + 2 * inner + number(s.heads) * tokens);
  };
  // Of a word in seven that is masked, the logits, their probabilities and their gradient.
  const double reading = s.pretrain > 0 ? of_rows(number(s.pretrain_batch)) +
                                              number(s.pretrain_batch) * tokens / 7 * 3 * words
                                        : 0;
  const double kept = std::max(of_rows(rows), reading);
  // Those of a frozen encoder, of anml-er's gates, are in the model and its copies.
  return texts + sizeof(float) * (11 * parameters + kept);
}

}  // namespace lifelong
