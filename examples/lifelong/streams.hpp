// SPDX-License-Identifier: MIT
#pragma once

#include "question_stream.hpp"
#include "relation_stream.hpp"
#include "set_stream.hpp"
#include "text_streams.hpp"

namespace lifelong {

/// The stream of a seed in the order of its tasks as they are.
/// @param reading  whether what there is to read beforehand is wanted, too, if it is not what there
/// is to learn
inline Stream unshuffled_stream_of(const Settings& s, std::uint64_t seed, bool reading = false) {
  return s.candidates > 0       ? relation_stream(s, seed)
         : !s.sets.empty()      ? s.spans > 0 ? question_stream(s, seed) : set_stream(s, seed)
              : s.spans > 0 ? made_span_stream(s, seed)
         : !s.texts.empty()     ? text_stream(s, seed, reading)
         : !s.dialogues.empty() ? dialogue_stream(s, seed, reading)
         : !s.articles.empty()  ? article_stream(s, seed, reading)
                                : made_stream(s, seed);
}

/// The stream of a seed in an order of its tasks.
inline Stream stream_of(const Settings& s, std::uint64_t seed, Index order) {
  Stream out = unshuffled_stream_of(s, seed);
  infty::Random random(static_cast<std::uint64_t>(order), 12);
  if (order != 1) shuffle(out.tasks, random);
  return out;
}

/// What an encoder reads before any stream is learned: what there is to learn
/// from in given texts, conversations or articles; or else what a stream of a seed of its own has
/// to learn, without the answers.
inline Stream reading_of(const Settings& s) {
  constexpr std::uint64_t seed = ~std::uint64_t{0};
  Stream out = unshuffled_stream_of(s, seed, true);
  if (!out.reading.empty()) return out;
  for (const infty::LifelongTask& task : out.tasks)
    for (const infty::Example& example : task.training)
      if (example.tokens.size() > 1)
        out.reading.emplace_back(example.tokens.begin() + 1, example.tokens.end());
  infty::require(!out.reading.empty(), "lifelong", "there is no word to be read beforehand");
  return out;
}

}  // namespace lifelong
