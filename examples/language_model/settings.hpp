// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/model/presets.hpp>
#include <infty/train/adam.hpp>

#include "../support/training.hpp"

namespace language_model {

using infty::Index;

/// Everything that decides which numbers come out of training.
struct Settings {
  std::string memory = "infty";
  std::uint64_t seed = 1;

  std::string data, valid, test;
  std::string level = "word", bpe;
  Index min_count = 1, max_vocabulary = 0;
  bool documents = false;

  infty::TransformerConfig model{
      .model_dim = 64, .layers = 2, .heads = 4, .feed_forward = 128, .pre_norm = true};
  std::vector<Index> cutoffs = {2000, 10000};
  Index div_value = 2;
  Index parameters = 0;

  Index memory_length = 64, compressed = -1, compression_rate = 4;
  infty::LongTermConfig long_term{
      .widths = {.02, .1}, .samples = 64, .tau = .75, .ridge = .5, .variance_floor = 1e-4};
  double kl_weight = 1e-6;
  double auxiliary_weight = 1;

  Index batch = 8, segment = 64, steps = 2000;
  infty::AdamConfig adam{.learning_rate = 2e-3};
  std::string schedule = "cosine";
  Index warmup = 100;
  double last_rate = 0, clip = 1;

  Index evaluate_every = 1000, evaluation_batch = 16;
};

/// Calls see(group, name, field, help, choice...) for every setting.
template <class See>
void each_setting(Settings& s, See&& see) {
  const char* const run = "What to train";
  see(run, "memory", s.memory, "of the model", "none", "xl", "compressive", "lamemo", "infty",
      "infty-sticky");
  see(run, "seed", s.seed, "of weights and of dropout");

  const char* const text = "The text";
  see(text, "data", s.data, "a file, or a folder of which each file is a document; none: a tale");
  see(text, "valid", s.valid, "the same for validation; without it --data is cut 90:5:5");
  see(text, "test", s.test, "the same for the test");
  see(text, "level", s.level, "what a token is", "word", "char", "byte", "bpe");
  see(text, "bpe", s.bpe, "folder of GPT-2's encoder.json and vocab.bpe, for --level bpe");
  see(text, "min-count", s.min_count, "words that occur less often are <unk>");
  see(text, "max-vocabulary", s.max_vocabulary, "most words; 0: all");
  see(text, "documents", s.documents, "reset a row's memory where a document begins");

  const char* const model = "The transformer";
  see(model, "width", s.model.model_dim, "d");
  see(model, "layers", s.model.layers, "one above the other");
  see(model, "heads", s.model.heads, "of attention");
  see(model, "head-dim", s.model.head_dim, "of each head; 0: width / heads");
  see(model, "feed-forward", s.model.feed_forward, "width of its inner layer");
  see(model, "parameters", s.parameters,
      "widen the feed-forward layers until there are about so many; 0: as they are");
  see(model, "pre-norm", s.model.pre_norm, "norms before attention and feed-forward, not behind");
  see(model, "tie-embedding", s.model.tie_embedding, "the output layer is the embedding");
  see(model, "dropout", s.model.dropout, "while training");
  see(model, "cutoffs", s.cutoffs,
      "of the adaptive embedding and softmax, those below the vocabulary; 0: none");
  see(model, "div-value", s.div_value, "clusters behind the first are narrower by this");

  const char* const memory = "The memory";
  see(memory, "memory-length", s.memory_length, "vectors a layer, of all kinds");
  see(memory, "compressed", s.compressed,
      "how many of them are compressed or basis functions where there are such; -1: half");
  see(memory, "compression-rate", s.compression_rate, "vectors that become a compressed one");
  see(memory, "widths", s.long_term.widths, "of the LTM's Gaussian basis functions");
  see(memory, "samples", s.long_term.samples, "of the LTM's past at a contraction");
  see(memory, "tau", s.long_term.tau, "share of the LTM that the past is contracted to");
  see(memory, "ridge", s.long_term.ridge, "penalty of the LTM's regression");
  see(memory, "gate", s.long_term.gate, "new vectors pass a gate into the LTM");
  see(memory, "sigma0", s.long_term.sigma0, "width of the prior of the LTM's densities");
  see(memory, "variance-floor", s.long_term.variance_floor, "least variance of these");
  see(memory, "sticky-bins", s.long_term.bins, "of the histogram that sticky memories sample by");
  see(memory, "kl-weight", s.kl_weight,
      "of the mean divergence from that prior, summed over layers");
  see(memory, "auxiliary-weight", s.auxiliary_weight, "of a memory's own loss, if it has one");

  const char* const training = "Training";
  see(training, "batch", s.batch, "rows side by side");
  see(training, "segment", s.segment, "tokens of a row that are read at once");
  support::each_training_setting(training, s, see);

  const char* const evaluation = "Evaluation";
  see(evaluation, "evaluate-every", s.evaluate_every, "steps between validations; 0: at the end");
  see(evaluation, "evaluation-batch", s.evaluation_batch, "rows side by side");
}

/// The names of the papers' experiments on text.
inline const std::vector<std::string> preset_names{"wikitext103", "gpt2-wikitext103", "gpt2-pg19",
                                                   "cmu-dog"};

/// A paper's model and training by its name, from the library's presets. The vocabulary is that of
/// the text, and what counts epochs there is to be given as --steps.
inline Settings preset(const std::string& name) {
  namespace presets = infty::presets;
  const bool word = name == "wikitext103";
  const presets::Experiment paper = word                         ? presets::wikitext103(false)
                                    : name == "gpt2-wikitext103" ? presets::gpt2_wikitext103(false)
                                    : name == "gpt2-pg19"        ? presets::gpt2_pg19(false)
                                                                 : presets::cmu_dog(false);
  Settings s;
  s.level = word ? "word" : "bpe";
  s.model = paper.model;
  s.cutoffs = word ? std::vector<Index>{20000, 40000, 200000} : std::vector<Index>{0};
  s.div_value = 4;
  s.long_term = *paper.memory.long_term;
  s.memory_length = paper.memory.short_term.capacity + s.long_term.basis;
  s.compressed = s.long_term.basis;
  s.kl_weight = paper.kl_weight;
  s.batch = paper.batch;
  s.segment = paper.segment;
  if (paper.steps > 0) s.steps = paper.steps;
  s.adam.learning_rate = paper.learning_rate;
  s.warmup = paper.warmup_steps;
  s.schedule = paper.decay == presets::Decay::cosine ? "cosine" : "linear";
  s.clip = paper.max_norm;
  s.documents = name == "gpt2-pg19" || name == "cmu-dog";
  return s;
}

/// How many of a memory's vectors are compressed ones or basis functions.
inline Index compressed_length(const Settings& s) {
  return s.compressed >= 0 ? s.compressed : s.memory_length / 2;
}

using support::rate_of;

/// Throws infty::ValueError that names the first setting out of its range.
inline void validate(const Settings& s) {
  infty::require_at_least("language_model", "--batch", s.batch, 1);
  infty::require_at_least("language_model", "--segment", s.segment, 1);
  infty::require_at_least("language_model", "--steps", s.steps, 1);
  infty::require_at_least("language_model", "--memory-length", s.memory_length, 0);
  infty::require_at_least("language_model", "--compression-rate", s.compression_rate, 1);
  infty::require_at_least("language_model", "--parameters", s.parameters, 0);
  infty::require_at_least("language_model", "--min-count", s.min_count, 1);
  infty::require_at_least("language_model", "--max-vocabulary", s.max_vocabulary, 0);
  infty::require_at_least("language_model", "--evaluate-every", s.evaluate_every, 0);
  infty::require_at_least("language_model", "--evaluation-batch", s.evaluation_batch, 1);
  infty::require(s.compressed >= -1 && s.compressed <= s.memory_length, "language_model",
                 "--compressed is ", s.compressed, ": it must be -1 or lie in [0, ",
                 s.memory_length, "], the --memory-length");
  infty::require(s.valid.empty() == s.test.empty(), "language_model",
                 "--valid and --test go together");
  infty::require(s.valid.empty() || !s.data.empty(), "language_model",
                 "--valid and --test need --data");
  infty::require((s.level == "bpe") == !s.bpe.empty(), "language_model",
                 "--level bpe and --bpe, a folder of encoder.json and vocab.bpe, go together");
  support::require_not_negative("language_model", "kl-weight", s.kl_weight);
  support::require_not_negative("language_model", "auxiliary-weight", s.auxiliary_weight);
  support::validate_training("language_model", s);
}

}  // namespace language_model
