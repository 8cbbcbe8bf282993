// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <infty/data/multi_query_recall.hpp>

#include "settings.hpp"
#include "task.hpp"

// Multi-query associative recall [Arora et al. 2024], in sizes for a CPU and in its authors'.

namespace recall {

/// The defaults that --zoology stands for: its authors' tokens and examples, two blocks of one head
/// without feed-forward networks, of the least width and with the rates that they tried. What
/// differs: places are relative, where theirs are learnt; nothing is dropped, of embeddings and
/// attention .1 there; and the accuracy that ends a training is not that of the sequences that are
/// reported.
inline Settings published(Settings s) {
  s.zoology = true;
  s.mqar_vocabulary = 8192;
  s.mqar_examples = 100'000;
  s.model.model_dim = 64;
  s.model.layers = 2;
  s.model.heads = s.mqar_heads = 1;
  s.model.pre_norm = true;
  s.model.embedding_deviation = .02;
  s.rates = {1e-4, 4.6415888e-4, 2.1544347e-3, 1e-2};
  s.mqar_mix_rates = {1e-3, 3.1622777e-3, 1e-2, 3.1622777e-2};
  return s;
}

/// The longest sequences of the mix, which have 256 pairs.
inline constexpr Index mqar_mix_longest = 1024;

/// Different tokens of the mix.
inline Index mqar_mix_vocabulary(const Settings& s) {
  return std::max<Index>(1024, s.mqar_vocabulary);
}

/// Sequences a step, of the task of one length or of the mix.
inline Index mqar_batch(const Settings& s, bool mix, Index length) {
  return !s.zoology ? s.batch : mix || length >= 256 ? 256 : 512;
}

/// So many examples of a length with so many pairs.
struct MqarSet {
  Index length, pairs, examples;
};

inline Source mqar_source(const Settings& s, Index vocabulary, const MqarSet& set,
                          bool random_non_queries) {
  const infty::MultiQueryRecallTask task({.vocabulary = vocabulary,
                                          .length = set.length,
                                          .pairs = set.pairs,
                                          .random_non_queries = random_non_queries});
  return {.sample =
              [task, segment = s.segment](Index batch, infty::Random& random) {
                const auto drawn = task.sample(batch, random);
                return support::Questions{
                    {}, support::segments(batch, drawn.inputs, drawn.labels, segment)};
              },
          .examples = set.examples};
}

/// A task of these sets, with sequences so many a step, and so many epochs where it is the
/// authors'.
inline Task mqar_of(const Settings& s, std::string name, Index vocabulary,
                    const std::vector<MqarSet>& training, const std::vector<MqarSet>& tests,
                    bool random_non_queries, Index epochs, Index batch) {
  Task task{.name = std::move(name),
            .vocabulary = vocabulary,
            .chance = 2 / static_cast<double>(vocabulary),
            .training = {},
            .trainer = {.steps = s.mqar_steps,
                        .adam = {.weight_decay = .1},
                        .warmup_steps = s.warmup,
                        .max_norm = s.clip},
            .batch = batch};
  for (const MqarSet& set : training)
    task.training.push_back(mqar_source(s, vocabulary, set, random_non_queries));
  for (const MqarSet& set : tests) {
    task.tests.push_back(mqar_source(s, vocabulary, set, random_non_queries));
    task.length = std::max(task.length, set.length);
  }
  if (s.zoology) {
    const Index epoch = epoch_of(task);
    task.trainer.steps = epochs * epoch;
    task.trainer.rate_every = epoch;
    task.trainer.warmup_steps = 0;
    task.trainer.max_norm = 0;
    task.enough = .99;
  }
  return task;
}

/// Sequences of one length, with a pair for every 16 tokens.
inline Task mqar_task(const Settings& s, Index length) {
  const Index pairs = std::max<Index>(1, length / 16);
  return mqar_of(s, "mqar " + std::to_string(length), s.mqar_vocabulary,
                 {{length, pairs, s.mqar_examples}}, {{length, pairs, s.zoology ? 3000 : 0}}, false,
                 64, mqar_batch(s, false, length));
}

/// Several lengths and numbers of pairs to learn from, longer ones in the test, any tokens between
/// the questions.
inline Task mqar_mix_task(const Settings& s) {
  const Index all = s.mqar_examples, some = all > 0 ? all / 5 + (all % 5 > 0) : 0;
  const Index each = s.zoology ? 1000 : 0;
  return mqar_of(s, mqar_mix, mqar_mix_vocabulary(s),
                 {{64, 4, all}, {128, 8, some}, {256, 16, some}, {256, 32, some}, {256, 64, some}},
                 {{64, 4, each},
                  {64, 8, each},
                  {64, 16, each},
                  {128, 32, each},
                  {256, 64, each},
                  {512, 128, each},
                  {mqar_mix_longest, 256, each}},
                 true, 32, mqar_batch(s, true, mqar_mix_longest));
}

}  // namespace recall
