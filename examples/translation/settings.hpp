// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <infty/data/translation.hpp>
#include <infty/nn/beam_search.hpp>

#include "../support/products.hpp"
#include "../support/ranges.hpp"
#include "../support/settings.hpp"
#include "../support/transformer.hpp"

namespace translation {

using infty::Index;

inline const std::vector<std::string> form_names{
    "plain", "memory-transformer", "memctrl", "membottleneck", "memsizer", "memformer"};

/// Everything that decides which numbers come out.
struct Settings {
  std::vector<std::string> forms = form_names;
  std::vector<std::uint64_t> seeds{1, 2, 3};

  infty::TranslationConfig task;

  infty::TransformerConfig model{
      .model_dim = 64, .layers = 2, .heads = 4, .feed_forward = 128, .embedding_deviation = 0};
  Index token_count = 8, slots = 16, self_slots = 8;

  Index batch = 32, steps = 1000, warmup = 100;
  double rate = 3e-3, clip = 1;
  std::string products = support::products_now();

  Index evaluation_sequences = 256;
  infty::BeamSearchConfig search;
};

/// Calls see(group, name, field, help, choice...) for every setting.
template <class See>
void each_setting(Settings& s, See&& see) {
  const char* const run = "What to train";
  see(run, "forms", s.forms, "of encoders and decoders, in this order", "plain",
      "memory-transformer", "memctrl", "membottleneck", "memsizer", "memformer");
  see(run, "seeds", s.seeds, "of weights and sentences");

  const char* const task = "The languages";
  see(task, "nouns", s.task.nouns, "different nouns");
  see(task, "adjectives", s.task.adjectives, "different adjectives");
  see(task, "verbs", s.task.verbs, "different verbs");
  see(task, "clauses", s.task.clauses, "most clauses of a sentence");
  see(task, "modifiers", s.task.modifiers, "most adjectives of a noun");

  const char* const model = "The models";
  support::each_transformer_setting(model, s.model, see);
  see(model, "token-count", s.token_count,
      "memory tokens of the memory-transformer, of memctrl and of membottleneck");
  see(model, "slots", s.slots, "of memformer, and of memsizer's attention to the source");
  see(model, "self-slots", s.self_slots, "of memsizer's attention to the target");

  const char* const training = "Training and evaluation";
  see(training, "batch", s.batch, "sentences a step");
  see(training, "steps", s.steps, "in all");
  see(training, "warmup", s.warmup, "steps in which the rate rises; then it falls to 0");
  see(training, "rate", s.rate, "learning rate of Adam, at its peak");
  see(training, "clip", s.clip, "greatest global norm of the gradients");
  support::each_products_setting(training, s.products, see);
  see(training, "evaluation-sequences", s.evaluation_sequences, "sentences that are translated");
  see(training, "beam", s.search.beam, "hypotheses that are held, beside one");
  see(training, "alpha", s.search.alpha, "of the length penalty, ((5 + n) / 6)^alpha");
}

/// Throws infty::ValueError that names the first setting out of its range.
inline void validate(const Settings& s) {
  support::validate_ranges("translation", s);
  support::require_some_once("translation", "forms", s.forms);
  support::require_some_once("translation", "seeds", s.seeds);
  s.task.validate();
  infty::require_at_least("translation", "--steps", s.steps, s.warmup + 1);
  support::check_transformer("translation", s.model, false);
  infty::require(s.clip > 0, "translation", "--clip is ", s.clip, ": it must be positive");
}

/// Bytes of the largest model with its gradients and Adam's moments, and of a batch of the longest
/// sentences: what a training keeps of it, or beam search. Sentences to be translated are drawn
/// twice as many, and are half as long on average.
inline double bytes_of(const Settings& s) {
  const auto number = [](Index n) { return static_cast<double>(n); };
  const double d = number(s.model.model_dim), f = number(s.model.feed_forward),
               layers = number(s.model.layers), heads = number(s.model.heads),
               clauses = number(s.task.clauses), modifiers = number(s.task.modifiers),
               source = clauses * (2 * modifiers + 6), target = clauses * (2 * modifiers + 8);
  const double words = number(s.task.nouns) + number(s.task.adjectives) + number(s.task.verbs),
               said = words + number(s.task.adjectives) + number(s.task.verbs),
               tokens = number(s.token_count), slots = number(s.slots + s.self_slots),
               batch = number(s.batch);
  const double parameters = (words + said + tokens) * d + layers * (12 * d * d + 4 * d * f) +
                            slots * d * (layers * (heads + 1));
  const double training =
      batch * (layers * (source + tokens + target) * (8 * d + 2 * f) + 2 * target * said);
  const double searching = batch * number(s.search.beam) * (layers * target * 2 * d + 2 * said);
  return sizeof(float) * (4 * parameters + std::max(training, searching)) +
         sizeof(Index) * number(s.evaluation_sequences) * (source + target);
}

}  // namespace translation
