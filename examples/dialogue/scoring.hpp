// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/metrics/dialogue_score.hpp>
#include <infty/metrics/meteor.hpp>
#include <infty/metrics/rouge.hpp>
#include <infty/metrics/unigram_f1.hpp>
#include <infty/nn/sampling.hpp>

#include "corpus.hpp"

namespace dialogue {

/// How a model stands to a part of the data: the paper's Table 2, in its scale, and beside it what
/// the program could have printed.
struct Score {
  Index dialogues = 0, predicted = 0, answers = 0;
  double perplexity = 0;        ///< by token
  double table_perplexity = 0;  ///< as the program weighs dialogues, and the paper has it
  double f1 = 0, meteor = 0;
  double rouge1 = 0, rouge_l = 0;      ///< the recall, which the program and the paper have
  double rouge1_f = 0, rouge_l_f = 0;  ///< the F that ROUGE is elsewhere
};

/// Calls see(name, field) for all of a score; `part` begins the names.
template <class See>
void each_score(const std::string& part, Score& score, See&& see) {
  const auto one = [&](const char* name, auto& field) { see((part + name).c_str(), field); };
  one("dialogues", score.dialogues);
  one("predicted", score.predicted);
  one("answers", score.answers);
  one("perplexity", score.perplexity);
  one("table_perplexity", score.table_perplexity);
  one("f1", score.f1);
  one("rouge1", score.rouge1);
  one("rouge_l", score.rouge_l);
  one("rouge1_f", score.rouge1_f);
  one("rouge_l_f", score.rouge_l_f);
  one("meteor", score.meteor);
}

/// The first so many dialogues of a part, all for 0.
inline std::span<const Encoded> first_of(const Split& split, Index count) {
  const auto all = std::ssize(split.dialogues);
  return std::span(split.dialogues)
      .first(static_cast<std::size_t>(count > 0 ? std::min(count, all) : all));
}

/// Adds to a score how well dialogues are predicted; `done(more)` is called behind each, and may
/// throw.
template <class Done>
void add_perplexity(Score& score, const Model& model, const Settings& s, const Tokenizer& tokenizer,
                    std::span<const Encoded> dialogues, Done&& done) {
  infty::DialogueScore all;
  for (const Encoded& dialogue : dialogues) {
    auto state = model.make_state(1);
    double nats = 0;
    Index predicted = 0, positions = 0;
    const auto sequence =
        sequence_of(dialogue, dialogue.turns.size(), seen_by(s), tokenizer.marks());
    for (const Chunk& chunk : predicted_chunks(sequence, model.memory().segment, false)) {
      for (const float loss : model.losses(state, batch_of(chunk), chunk.types))
        nats += static_cast<double>(loss);
      predicted += chunk.predicted;
      positions += std::ssize(chunk.tokens) - 1;
    }
    all.add(nats, predicted, positions);
    score.predicted += predicted;
    done(1);
  }
  score.dialogues = std::ssize(dialogues);
  score.perplexity = all.perplexity();
  score.table_perplexity = all.weighed_perplexity();
}

/// Draws tokens until a mark ends them, or there are `longest`: `next(token)` reads the last one
/// and returns the scores behind it. A mark in the first place is drawn again, ten times at most.
/// @param scores  behind all that was read
template <class Next>
Tokens draw_answer(std::vector<float> scores, const Tokenizer& tokenizer, Index longest,
                   const infty::Sampling& sampling, infty::Random& random, Next&& next) {
  constexpr int tries = 10;
  Tokens answer;
  while (std::ssize(answer) < longest) {
    if (!answer.empty()) scores = next(answer.back());
    const auto draw = [&] {
      return static_cast<TokenId>(infty::sample(std::span<const float>(scores), sampling, random));
    };
    TokenId token = draw();
    for (int i = 0; answer.empty() && tokenizer.ends(token) && i < tries; ++i) token = draw();
    if (tokenizer.ends(token)) break;
    answer.push_back(token);
  }
  return answer;
}

/// What a model says behind the first `turns` turns of a dialogue. Of the chunks the last one
/// leaves room for the answer. A form without a memory reads that one alone.
inline std::string answer_to(const Model& model, const Settings& s, const Tokenizer& tokenizer,
                             const Encoded& dialogue, std::size_t turns, infty::Random random) {
  const auto& marks = tokenizer.marks();
  const Index length = model.memory().segment;
  auto chunks = chunks_of(sequence_of(dialogue, turns, seen_by(s), marks), length, false,
                          length - s.longest - 1);
  if (is_plain(s.form)) chunks.erase(chunks.begin(), chunks.end() - 1);
  auto state = model.make_state(1);
  for (std::size_t i = 0; i + 1 < chunks.size(); ++i)
    model.observe(state, 1, chunks[i].tokens, chunks[i].types);
  std::vector<Index>&tokens = chunks.back().tokens, &types = chunks.back().types;
  const Index mark = turns % 2 == 0 ? marks.first : marks.second;
  const auto read = [&](Index token) {
    tokens.push_back(token);
    types.push_back(mark);
    if (model.reads_pieces()) {
      auto scores = model.logits(state, 1, tokens, types);
      tokens.clear();
      types.clear();
      return scores;
    }
    Model::State copy = state;
    return model.logits(copy, 1, tokens, types);
  };
  return tokenizer.decode(draw_answer(read(mark), tokenizer, s.longest, s.sampling, random, read));
}

/// Which turns are answered: behind three turns at the least, as many as are asked for.
inline std::vector<std::pair<const Encoded*, std::size_t>> asked_answers(
    std::span<const Encoded> dialogues, Index count) {
  std::vector<std::pair<const Encoded*, std::size_t>> all, some;
  for (const Encoded& dialogue : dialogues)
    for (std::size_t turns = 3; turns < dialogue.turns.size(); ++turns)
      all.emplace_back(&dialogue, turns);
  if (count == 0 || count >= std::ssize(all)) return all;
  for (Index i = 0; i < count; ++i)
    some.push_back(all[static_cast<std::size_t>(i * std::ssize(all) / count)]);
  return some;
}

/// An answer beside what was said, for a file of them.
struct Answer {
  std::string said, reference;
};

/// Adds to a score how answers stand to what was said. `done(more)` is called behind each.
/// @param wordnet  for METEOR's synonyms, or null
/// @param kept     gets the answers, unless it is null
template <class Done>
void add_answers(Score& score, const Model& model, const Settings& s, const Tokenizer& tokenizer,
                 std::span<const Encoded> dialogues, const infty::WordNet* wordnet,
                 std::vector<Answer>* kept, Done&& done) {
  const auto asked = asked_answers(dialogues, s.answers);
  const infty::Random random(s.seed, 5);
  for (const auto& [dialogue, turns] : asked) {
    const auto number = static_cast<std::uint64_t>(score.answers++);
    const std::string said = answer_to(model, s, tokenizer, *dialogue, turns, random.split(number));
    const std::string& reference = dialogue->texts[turns];
    const double share = 100 / static_cast<double>(asked.size());
    const infty::Overlap one = infty::rouge_n(said, reference, 1);
    const infty::Overlap longest = infty::rouge_l(said, reference);
    score.f1 += share * infty::unigram_f1(said, reference);
    score.rouge1 += share * one.recall;
    score.rouge1_f += share * one.f();
    score.rouge_l += share * longest.recall;
    score.rouge_l_f += share * longest.f();
    score.meteor += share * infty::meteor(said, reference, {}, wordnet).score;
    if (kept) kept->push_back({said, reference});
    done(1);
  }
}

}  // namespace dialogue
