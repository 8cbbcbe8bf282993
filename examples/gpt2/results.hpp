// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include <infty/core/finite.hpp>

#include "../support/decimal.hpp"
#include "../support/gpt2/model.hpp"
#include "../support/json.hpp"
#include "../support/progress_line.hpp"
#include "text.hpp"

namespace gpt2 {

using support::gpt2::Model;

/// The score of a part of the text in all its measures.
struct Score {
  Index tokens = 0, words = 0, characters = 0, bytes = 0;
  double nats = 0, nats_per_token = 0, perplexity = 0, word_perplexity = 0, bits_per_character = 0,
         bits_per_byte = 0;
};

template <class See>
void each_field(Score& score, See&& see) {
  see("tokens", score.tokens);
  see("words", score.words);
  see("characters", score.characters);
  see("bytes", score.bytes);
  see("nats", score.nats);
  see("nats_per_token", score.nats_per_token);
  see("perplexity", score.perplexity);
  see("word_perplexity", score.word_perplexity);
  see("bits_per_character", score.bits_per_character);
  see("bits_per_byte", score.bits_per_byte);
}

/// In the measures of a part. Where blocks leave tokens out, words and bytes count by the share of
/// tokens that were predicted.
inline Score score_of(const infty::TextScore& score, const Part& part) {
  const auto counted = [&](Index n) {
    if (score.tokens >= part.tokens) return n;
    const double share = static_cast<double>(score.tokens) / static_cast<double>(part.tokens);
    return static_cast<Index>(std::llround(share * static_cast<double>(n)));
  };
  const Index words = counted(part.words), characters = counted(part.characters),
              bytes = counted(part.bytes);
  const infty::TextScore of_words{.nats = score.nats, .tokens = words};
  return {.tokens = score.tokens,
          .words = words,
          .characters = characters,
          .bytes = bytes,
          .nats = score.nats,
          .nats_per_token = score.per_token(),
          .perplexity = score.perplexity(),
          .word_perplexity = of_words.perplexity(),
          .bits_per_character = score.bits_per(characters),
          .bits_per_byte = score.bits_per(bytes)};
}

inline void print_score(const char* what, const Score& score) {
  std::printf(
      "%-5s  %10td tokens  %.4f nats a token  perplexity %s  (%s a word)  %.4f bits per byte\n",
      what, score.tokens, score.nats_per_token, support::decimal(score.perplexity, 3).c_str(),
      support::decimal(score.word_perplexity, 3).c_str(), score.bits_per_byte);
}

/// Reads a part of the text from its beginning to its end with a state of its own.
/// @param behind  called behind each segment; may throw
template <class Behind>
infty::TextScore evaluate(const char* name, const Model& model, const Part& part, Batches batches,
                          Behind&& behind) {
  support::ProgressLine line(name, std::ssize(part.stream.tokens), 0, "token");
  Model::State state;
  infty::TextScore score;
  for (bool last = false; !last;) {
    const infty::TextBatch batch = batches.next();
    model.reset_rows(state, batch);
    score.add(batch, model.losses(state, batch));
    line.update(score.tokens);
    behind(score.tokens);
    last = batch.last;
  }
  return score;
}

/// What is reported of a trained model: results.json, which has its settings beside this.
struct Results {
  std::string job, memory;
  Index parameters = 0, memory_parameters = 0, vocabulary = 0, steps = 0, best_step = 0,
        trained_tokens = 0;
  double seconds = 0, tokens_per_second = 0;
  std::uint64_t state_bytes = 0, seed = 0;
  Score valid, test;
};

template <class See>
void each_field(Results& results, See&& see) {
  see("job", results.job);
  see("memory", results.memory);
  see("seed", results.seed);
  see("parameters", results.parameters);
  see("memory_parameters", results.memory_parameters);
  see("vocabulary", results.vocabulary);
  see("steps", results.steps);
  see("best_step", results.best_step);
  see("trained_tokens", results.trained_tokens);
  see("seconds", results.seconds);
  see("tokens_per_second", results.tokens_per_second);
  see("state_bytes", results.state_bytes);
  see("valid", results.valid);
  see("test", results.test);
}

/// The results of a finished run in a folder. Throws infty::IoError if they are damaged.
inline std::pair<Results, nlohmann::json> read_results(const std::filesystem::path& path) {
  auto json = support::read_json(path);
  infty::require<infty::IoError>(json.is_object() && json.contains("settings"), "gpt2",
                                 path.string(), " has no settings: it is no file of this program");
  const auto settings = json.at("settings");
  json.erase("settings");
  Results results;
  support::read(json, results, path.string());
  return {results, settings};
}

}  // namespace gpt2
