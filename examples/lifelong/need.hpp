// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include "../support/need.hpp"
#include "settings.hpp"

namespace lifelong {

/// Bytes that a run needs, about: texts and those that the memory holds, the parameters with their
/// gradients, moments and copies, and what the largest batch keeps for the way back.
inline double bytes_of(const Settings& s) {
  const auto number = [](Index n) { return static_cast<double>(n); };
  const double tokens = number(s.length) + 1, width = number(s.width),
               inner = number(s.feed_forward);
  const double tasks = s.texts.empty() ? number(s.tasks) : 1;
  const double words = s.texts.empty()
                           ? tasks * number(s.topic_words) +
                                 number(s.classes) * number(s.class_words) + number(s.fillers)
                           : number(s.max_vocabulary);
  const double texts = 2 * tasks * (number(s.training) + number(s.test)) * tokens * sizeof(Index);
  const double parameters = (words + tokens + tasks * number(s.classes)) * width +
                            number(s.layers) * (4 * width * width + 2 * width * inner);
  const double rows = number(std::max(
      {s.batch, s.test, s.agem_sample, s.replay.drawn(),
       std::min(s.adaptation.neighbours * std::min(s.together, s.batch), s.tasks * s.training)}));
  const double kept =
      rows * tokens * number(s.layers) * (12 * width + 2 * inner + number(s.heads) * tokens);
  return texts + sizeof(float) * (7 * parameters + kept);
}

}  // namespace lifelong
