// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/model/presets.hpp>
#include <infty/train/adam.hpp>

#include "../model.hpp"
#include "../ranges.hpp"
#include "../training.hpp"
#include "../transformer.hpp"

namespace language_model {

using infty::Index;

/// Everything that decides which numbers come out of training.
struct Settings {
  std::string memory = "infty";
  std::string mixer = "attention", feed = "plain", tokens = "none", positions = "none";
  std::uint64_t seed = 1;
  std::string from;

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
  std::string stored = "float32";
  Index neighbours = 0, key_heads = 0, local_cache = 0, local_window = 0;
  std::string merge = "gate";
  Index token_count = 8, sub_keys = 32;
  support::Lookups lookups;
  std::string spalm;
  Index spalm_neighbours = 4;
  std::string spalm_index = "exact";
  infty::LongTermConfig long_term{
      .widths = {.02, .1}, .samples = 64, .tau = .75, .ridge = .5, .variance_floor = 1e-4};
  support::Contraction contraction;
  double kl_weight = 1e-6;
  double auxiliary_weight = 1;

  Index batch = 8, segment = 64, bptt = 1, steps = 2000;
  bool replay = false;
  infty::AdamConfig adam{.learning_rate = 2e-3};
  std::string schedule = "cosine";
  Index warmup = 100;
  double last_rate = 0, clip = 1, values_rate = 1e-3;
  std::string products = support::products_now();

  Index shards = 0;
  std::string reduce = "tree";

  Index evaluate_every = 1000, evaluation_batch = 16;
};

/// Calls see(group, name, field, help, choice...) for every setting.
template <class See>
void each_setting(Settings& s, See&& see) {
  const char* const run = "What to train";
  see(run, "memory", s.memory, "of the model", support::all_memory_names);
  see(run, "mixer", s.mixer, "in the place of attention, with --memory none", "attention", "linear",
      "rfa", "t2r", "delta-net", "gated-delta-net", "memsizer", "titans-layer");
  see(run, "feed", s.feed, "in the place of a feed-forward layer, or a lookup in front of a layer",
      "plain", "product-keys", "memory-plus", "engram");
  see(run, "tokens", s.tokens, "memory tokens through the stack", "none", "memory", "recurrent",
      "associative", "titans-front");
  see(run, "positions", s.positions,
      "in the text since the row was fresh, added to its tokens' vectors", "none", "sinusoidal");
  see(run, "seed", s.seed, "of weights and of dropout");
  see(run, "from", s.from,
      "folder of a trained model, of another memory or none, whose parameters it begins with");

  const char* const text = "The text";
  see(text, "data", s.data, "a file, or a folder of which each file is a document; none: a tale");
  see(text, "valid", s.valid, "the same for validation; without it --data is cut 90:5:5");
  see(text, "test", s.test, "the same for the test");
  see(text, "level", s.level, "what a token is", "word", "char", "byte", "bpe");
  see(text, "bpe", s.bpe,
      "folder of vocab.json and merges.txt, or encoder.json and vocab.bpe, for --level bpe");
  see(text, "min-count", s.min_count, "words that occur less often are <unk>");
  see(text, "max-vocabulary", s.max_vocabulary, "most words; 0: all");
  see(text, "documents", s.documents, "reset a row's memory where a document begins");

  const char* const model = "The transformer";
  support::each_transformer_setting(model, s.model, see);
  support::each_chosen(model, s.model, {{"head_dim", "head-dim"}}, see);
  see(model, "parameters", s.parameters,
      "widen the feed-forward layers until there are about so many; 0: as they are");
  support::each_chosen(model, s.model,
                       {{"tie_embedding", "tie-embedding"},
                        {"embedding_deviation", "embedding-deviation"},
                        {"dropout"}},
                       see);
  see(model, "cutoffs", s.cutoffs,
      "of the adaptive embedding and softmax, those below the vocabulary; 0: none");
  see(model, "div-value", s.div_value, "clusters behind the first are narrower by this");

  const char* const memory = "The memory";
  see(memory, "memory-length", s.memory_length, "vectors a layer, of all kinds");
  see(memory, "compressed", s.compressed,
      "how many of them are compressed or basis functions where there are such; -1: half");
  see(memory, "stored", s.stored, "as what a memory of single keys keeps them (memorizing)",
      "float32", "bfloat16");
  see(memory, "neighbours", s.neighbours,
      "of these that a query attends to; 0: 32, or all if there are fewer");
  see(memory, "merge", s.merge, "of these and the local context: by a gate, or in one softmax",
      "gate", "joint");
  see(memory, "key-heads", s.key_heads, "of these: 0 as many as of queries, or 1");
  see(memory, "local-cache", s.local_cache, "vectors before the segment in the local context");
  see(memory, "local-window", s.local_window,
      "how far back in the local context a query sees; 0: to its beginning");
  see(memory, "token-count", s.token_count, "memory tokens, where there are any");
  see(memory, "sub-keys", s.sub_keys, "n, of lookups, which have n² slots");
  see(memory, "lookup-layers", s.lookups.layers,
      "with a lookup, from 0; -1: the one above the lower half");
  see(memory, "lookup-heads", s.lookups.heads, "of product keys");
  see(memory, "lookup-slots", s.lookups.slots,
      "that each of these reads; 0: 32, or --sub-keys if that is less");
  see(memory, "lookup-norm", s.lookups.norm, "of product-keys' queries, over a batch");
  see(memory, "spalm", s.spalm,
      "attend to tokens looked up in this datastore, of build-datastore; none: no look-up");
  see(memory, "spalm-neighbours", s.spalm_neighbours, "tokens that are looked up for each");
  see(memory, "spalm-index", s.spalm_index, "by which they are: every key, or FAISS's", "exact",
      "flat", "ivf", "ivfpq");
  see(memory, "compression-rate", s.compression_rate, "vectors that become a compressed one");
  support::each_chosen(memory, s.long_term, {{"widths"}, {"samples"}, {"tau"}}, see);
  support::each_contraction_setting(memory, s.contraction, see);
  support::each_chosen(memory, s.long_term,
                       {{"ridge"},
                        {"bounded"},
                        {"hold_short_writes", "hold"},
                        {"gate"},
                        {"sigma0"},
                        {"variance_floor", "variance-floor"},
                        {"bins", "sticky-bins"},
                        {"threshold"}},
                       see);
  see(memory, "kl-weight", s.kl_weight,
      "of the mean divergence from that prior, summed over layers");
  see(memory, "auxiliary-weight", s.auxiliary_weight, "of a memory's own loss, if it has one");

  const char* const training = "Training";
  see(training, "batch", s.batch, "rows side by side");
  see(training, "segment", s.segment, "tokens of a row that are read at once");
  see(training, "bptt", s.bptt, "segments a step, through which its gradient flows");
  see(training, "replay", s.replay,
      "compute these anew in the backward pass, in the memory of one of them");
  support::each_training_setting(training, s, see);
  see(training, "values-rate", s.values_rate, support::values_rate_help);
  support::each_shard_setting(training, s, see);

  const char* const evaluation = "Evaluation";
  see(evaluation, "evaluate-every", s.evaluate_every, "steps between validations; 0: at the end");
  see(evaluation, "evaluation-batch", s.evaluation_batch, "rows side by side");
}

/// What every experiment on text sets. The vocabulary is that of the text, and what counts epochs
/// there is to be given as --steps.
template <class MemoryConfig>
Settings preset(const char* memory, const char* level,
                const infty::presets::ExperimentWith<MemoryConfig>& paper) {
  Settings s;
  s.memory = memory;
  s.level = level;
  s.model = paper.model;
  s.cutoffs = paper.model.cutoffs.empty() ? std::vector<Index>{0} : paper.model.cutoffs;
  s.div_value = paper.model.div_value;
  s.kl_weight = paper.kl_weight;
  s.batch = paper.batch;
  s.segment = paper.segment;
  if (paper.steps > 0) s.steps = paper.steps;
  s.adam.learning_rate = paper.learning_rate;
  s.warmup = paper.warmup_steps;
  s.schedule = paper.decay == infty::presets::Decay::cosine ? "cosine" : "linear";
  s.clip = paper.max_norm;
  return s;
}

/// Those of a memory that holds vectors as they are.
template <class MemoryConfig>
Settings recent_preset(const char* memory, const char* level,
                       const infty::presets::ExperimentWith<MemoryConfig>& paper) {
  Settings s = preset(memory, level, paper);
  s.memory_length = paper.memory.capacity;
  return s;
}

inline Settings compressive_preset(
    const char* level, const infty::presets::ExperimentWith<infty::CompressiveConfig>& paper) {
  Settings s = preset("compressive", level, paper);
  s.memory_length = paper.memory.capacity + paper.memory.compressed_capacity;
  s.compressed = paper.memory.compressed_capacity;
  s.compression_rate = paper.memory.rate;
  return s;
}

inline Settings infty_preset(const char* level, const infty::presets::Experiment& paper,
                             bool documents = false) {
  Settings s = preset("infty-sticky", level, paper);
  s.long_term = *paper.memory.memory;
  s.memory_length = paper.memory.attention.capacity + s.long_term.basis;
  s.compressed = s.long_term.basis;
  s.documents = documents;
  return s;
}

/// The papers' experiments on text by name, from the library's presets.
inline const std::map<std::string, Settings>& presets() {
  namespace papers = infty::presets;
  static const std::map<std::string, Settings> all{
      {"wikitext103", infty_preset("word", papers::wikitext103())},
      {"gpt2-wikitext103", infty_preset("bpe", papers::gpt2_wikitext103())},
      {"gpt2-pg19", infty_preset("bpe", papers::gpt2_pg19(), true)},
      {"cmu-dog", infty_preset("bpe", papers::cmu_dog(), true)},
      {"xl-wikitext103", recent_preset("xl", "word", papers::transformer_xl_wikitext103())},
      {"xl-enwik8", recent_preset("xl", "byte", papers::transformer_xl_enwik8())},
      {"lamemo-wikitext103", recent_preset("lamemo", "word", papers::lamemo_wikitext103())},
      {"lamemo-enwik8", recent_preset("lamemo", "byte", papers::lamemo_enwik8())},
      {"lamemo-text8", recent_preset("lamemo", "char", papers::lamemo_text8())},
      {"compressive-wikitext103", compressive_preset("word", papers::compressive_wikitext103())},
      {"compressive-enwik8", compressive_preset("byte", papers::compressive_enwik8())}};
  return all;
}

/// How many of a memory's vectors are compressed ones or basis functions.
inline Index compressed_length(const Settings& s) {
  return s.compressed >= 0 ? s.compressed : s.memory_length / 2;
}

using support::trainer_config;

/// Throws infty::ValueError that names the first setting out of its range.
inline void validate(const Settings& s) {
  support::validate_ranges("language_model", s);
  infty::require(s.compressed >= -1 && s.compressed <= s.memory_length, "language_model",
                 "--compressed is ", s.compressed, ": it must be -1 or lie in [0, ",
                 s.memory_length, "], the --memory-length");
  infty::require(s.neighbours <= s.memory_length, "language_model", "--neighbours is ",
                 s.neighbours, ": it must be at most ", s.memory_length, ", the --memory-length");
  support::require_some_once("language_model", "lookup-layers", s.lookups.layers);
  for (const Index layer : s.lookups.layers)
    infty::require(layer < s.model.layers, "language_model", "--lookup-layers has ", layer,
                   ": there are ", s.model.layers, " --layers, from 0");
  infty::require(s.lookups.slots <= s.sub_keys, "language_model", "--lookup-slots is ",
                 s.lookups.slots, ": it must be at most ", s.sub_keys, ", the --sub-keys");
  for (std::size_t i = 1; i < s.cutoffs.size(); ++i)
    infty::require(s.cutoffs[i - 1] < s.cutoffs[i], "language_model", "--cutoffs has ",
                   s.cutoffs[i], " behind ", s.cutoffs[i - 1], ": they must rise");
  infty::require(s.valid.empty() == s.test.empty(), "language_model",
                 "--valid and --test go together");
  infty::require(s.valid.empty() || !s.data.empty(), "language_model",
                 "--valid and --test need --data");
  infty::require((s.level == "bpe") == !s.bpe.empty(), "language_model",
                 "--level bpe and --bpe, a folder of vocab.json and merges.txt, go together");
  infty::require(s.bptt > 1 || !s.replay, "language_model",
                 "--replay true goes with --bptt 2 or more: one segment is kept as it is");
  infty::require(!s.replay || s.feed != "product-keys", "language_model",
                 "--replay true and --feed product-keys do not go together: its norm of queries "
                 "takes in every batch that it sees, and would see each twice");
  infty::require(s.spalm.empty() || s.memory != "lamemo", "language_model",
                 "--spalm and --memory lamemo do not go together");
  infty::require(!s.spalm.empty() || s.spalm_index == "exact", "language_model",
                 "--spalm-index goes with --spalm, a datastore to search");
  support::validate_shards("language_model", s);
  support::validate_training("language_model", s);
}

}  // namespace language_model
