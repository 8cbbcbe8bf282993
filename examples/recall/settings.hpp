// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "../support/model.hpp"
#include "../support/products.hpp"
#include "../support/ranges.hpp"
#include "../support/settings.hpp"
#include "../support/transformer.hpp"

namespace recall {

using infty::Index;

/// The word that stands for no memory, but for attention that has the whole sequence before its
/// eyes. All others read in segments.
inline const std::string control = "attention";

/// The name of the task of mixed lengths.
inline const std::string mqar_mix = "mqar mix";

/// The words of which a tau is chosen, as the rate is; it contracts to that.
inline const std::vector<std::string> swept{"infty-tau", "infty-sticky-tau"};

/// The words that stand for models, in the order of the table.
inline std::vector<std::string> choices_of_memories() {
  std::vector<std::string> all = support::compared_names();
  all.insert(all.begin() + 1, control);
  all.insert(all.end(), swept.begin(), swept.end());
  return all;
}

/// Those that are compared where nothing else is asked for: of the ∞-former's with the papers'
/// contraction.
inline std::vector<std::string> usual_memories() {
  auto all = choices_of_memories();
  std::erase_if(all, [](const std::string& word) {
    return support::names_contraction(word) ||
           std::find(swept.begin(), swept.end(), word) != swept.end();
  });
  return all;
}

/// Everything that decides which numbers come out.
struct Settings {
  std::vector<std::string> memories = usual_memories();
  std::vector<std::string> tasks{"copy", "recall", "sorting", "mqar", "needle"};
  Index bytes = 16384;
  std::vector<std::string> curve_tasks{"recall"};
  std::vector<Index> curve_bytes{1024, 4096, 16384, 65536, 262144};

  Index symbols = 8, items = 5, copy_gap = 100;
  Index keys = 8, values = 4, pairs = 4, recall_gap = 100;
  std::vector<Index> lengths{128}, test_lengths;
  Index test_sequences = 64;
  std::vector<Index> mqar_lengths{64, 128, 256};
  Index mqar_vocabulary = 128, mqar_examples = 2000, mqar_steps = 1000, mqar_heads = 1;
  bool zoology = false;
  Index needle_keys = 8, needle_values = 8, needle_fillers = 8, needle_decoys = 3;
  Index needle_trained = 128, needle_steps = 800, needle_rows = 64;
  std::vector<Index> distances{16, 64, 256, 1024, 4096, 16384};

  infty::TransformerConfig model{.model_dim = 32,
                                 .layers = 2,
                                 .heads = 2,
                                 .feed_forward = 64,
                                 .pre_norm = true,
                                 .embedding_deviation = 0};
  Index parameters = 32000, segment = 16, compression_rate = 4;
  double share = .5;
  infty::LongTermConfig long_term{
      .widths = {.02, .1}, .samples = 64, .tau = .75, .ridge = .5, .bins = 32};
  support::Contraction contraction;
  std::vector<double> taus{.5, .75, .9, .95, .98};
  double kl_weight = 1e-6;

  Index batch = 16, steps = 800, warmup = 50;
  std::vector<double> rates{1e-3, 3e-3, 1e-2, 3e-2}, mqar_mix_rates;
  double clip = 1, values_rate = 1e-3;
  std::string products = support::products_now();
  std::vector<std::uint64_t> seeds{1, 2, 3};
  Index evaluation_sequences = 256;
};

/// Whether a word stands for a task of multi-query recall, of one length or of the mix.
inline bool is_mqar(const std::string& task) { return task.starts_with("mqar"); }

/// Heads of the models of a task.
inline Index heads_of(const Settings& s, const std::string& task) {
  return is_mqar(task) ? s.mqar_heads : s.model.heads;
}

/// What takes minutes, and shows which memories learn at all. Other options change it further.
inline Settings quick_settings() {
  Settings s;
  s.tasks = {"copy", "recall", "mqar"};
  s.mqar_lengths = {64};
  s.curve_tasks = {"none"};
  s.rates = {3e-3, 1e-2};
  s.seeds = {1};
  s.steps = 400;
  return s;
}
inline constexpr const char* quick_help =
    "minutes instead of hours: other defaults, of copying and recall, 400 steps each, and "
    "multi-query recall of 64 tokens, two rates, one seed, and no figure of sizes";

/// Calls see(group, name, field, help, choice...) for every setting.
template <class See>
void each_setting(Settings& s, See&& see) {
  const char* const run = "What to compare";
  see(run, "memories", s.memories, "in this order", choices_of_memories());
  see(run, "tasks", s.tasks, "in this order", "copy", "recall", "sorting", "mqar", "mqar-mix",
      "needle");
  see(run, "bytes", s.bytes,
      "of a Transformer-XL's vectors for a row; no state is larger than its");
  see(run, "curve-tasks", s.curve_tasks, "of the figure of accuracy against bytes", "none", "copy",
      "recall", "sorting", "mqar", "mqar-mix", "needle");
  see(run, "curve-bytes", s.curve_bytes, "that it has points for");
  see(run, "rates", s.rates, "learning rates that every memory is tried with");
  see(run, "mqar-mix-rates", s.mqar_mix_rates, "those for mqar-mix, if not the same");
  see(run, "taus", s.taus, "that infty-tau and infty-sticky-tau are tried with, each at each rate");
  see(run, "seeds", s.seeds, "of weights and sequences; rates and taus are tried with the first");

  const char* const task = "The tasks";
  see(task, "symbols", s.symbols, "different symbols to copy or to sort");
  see(task, "items", s.items, "symbols to copy");
  see(task, "copy-gap", s.copy_gap, "blanks between them and the copy");
  see(task, "keys", s.keys, "different keys of associative recall");
  see(task, "values", s.values, "different values");
  see(task, "pairs", s.pairs, "pairs of a key and a value in a sequence");
  see(task, "recall-gap", s.recall_gap, "blanks between them and the questions");
  see(task, "lengths", s.lengths, "of the sequences to sort, a task each");
  see(task, "test-lengths", s.test_lengths,
      "of other sequences, which who has learned to sort is tested on, too; 65536, say");
  see(task, "test-sequences", s.test_sequences, "of each of these lengths, a seed");
  see(task, "mqar-lengths", s.mqar_lengths,
      "of multi-query recall, a task each with a pair for every 16 tokens");
  see(task, "mqar-vocabulary", s.mqar_vocabulary, "its keys and values, half of them each");
  see(task, "mqar-examples", s.mqar_examples,
      "to learn it from, the same in every epoch; 0: fresh ones in every step");
  see(task, "mqar-steps", s.mqar_steps, "of training for it");
  see(task, "mqar-heads", s.mqar_heads, "of its models, in the place of --heads");
  see(task, "zoology", s.zoology,
      "multi-query recall as its authors had it: 8,192 tokens, 100,000 examples, width 64, one "
      "head, "
      "their rates and those of their mixture, unless other options say otherwise, and their "
      "batches and 64 epochs");
  see(task, "needle-keys", s.needle_keys, "different keys of the needle task");
  see(task, "needle-values", s.needle_values, "different values");
  see(task, "needle-fillers", s.needle_fillers, "different tokens between facts and question");
  see(task, "needle-decoys", s.needle_decoys, "facts beside the one that is asked for");
  see(task, "needle-trained", s.needle_trained, "tokens between them in training, at most");
  see(task, "needle-steps", s.needle_steps, "of training for it");
  see(task, "needle-rows", s.needle_rows, "texts, and so questions at each distance, a seed");
  see(task, "distances", s.distances,
      "tokens between them in the test; 1048576, say, takes a while");

  const char* const model = "The models";
  support::each_transformer_setting(model, s.model, see);
  see(model, "parameters", s.parameters,
      "widen feed-forward layers until a model that has any has about so many; 0: as they are");
  see(model, "segment", s.segment, "tokens that are read at once");
  see(model, "share", s.share, "of a state that is compressed, or the LTM, where there is one");
  see(model, "compression-rate", s.compression_rate, "vectors that become a compressed one");
  support::each_chosen(model, s.long_term, {{"widths"}, {"samples"}, {"tau"}}, see);
  support::each_contraction_setting(model, s.contraction, see);
  support::each_chosen(
      model, s.long_term,
      {{"ridge"}, {"bounded"}, {"hold_short_writes", "hold"}, {"bins", "sticky-bins"}}, see);
  see(model, "kl-weight", s.kl_weight, "of the divergence of the LTM's densities");

  const char* const training = "Training and evaluation";
  see(training, "batch", s.batch, "sequences a step");
  see(training, "steps", s.steps, "in all");
  see(training, "warmup", s.warmup, "steps in which the rate rises; then it falls to 0");
  see(training, "clip", s.clip, "greatest global norm of the gradients");
  see(training, "values-rate", s.values_rate, support::values_rate_help);
  support::each_products_setting(training, s.products, see);
  see(training, "evaluation-sequences", s.evaluation_sequences,
      "to choose a rate by, and as many others to report");
}

/// Throws infty::ValueError that names the first setting out of its range.
inline void validate(const Settings& s) {
  support::validate_ranges("recall", s);
  support::require_some_once("recall", "memories", s.memories);
  support::require_some_once("recall", "tasks", s.tasks);
  support::require_some_once("recall", "curve-tasks", s.curve_tasks);
  support::require_some_once("recall", "curve-bytes", s.curve_bytes);
  support::require_some_once("recall", "rates", s.rates);
  if (!s.mqar_mix_rates.empty())
    support::require_some_once("recall", "mqar-mix-rates", s.mqar_mix_rates);
  support::require_some_once("recall", "taus", s.taus);
  support::require_some_once("recall", "seeds", s.seeds);
  support::require_some_once("recall", "lengths", s.lengths);
  support::require_some_once("recall", "mqar-lengths", s.mqar_lengths);
  support::require_some_once("recall", "distances", s.distances);
  if (!s.test_lengths.empty()) support::require_some_once("recall", "test-lengths", s.test_lengths);
  infty::require(!s.zoology || s.mqar_examples > 0, "recall",
                 "--mqar-examples is 0: --zoology has epochs of them");
  infty::require_at_least("recall", "--steps", s.steps, s.warmup + 1);
  infty::require_at_least("recall", "--mqar-steps", s.mqar_steps, s.warmup + 1);
  infty::require_at_least("recall", "--needle-steps", s.needle_steps, s.warmup + 1);
  support::check_transformer("recall", s.model, false);
  infty::TransformerConfig of_mqar = s.model;
  of_mqar.heads = s.mqar_heads;
  support::check_transformer("recall", of_mqar, false, "--mqar-heads");
  support::check_basis("recall", "--widths", std::ssize(s.long_term.widths), s.long_term.widths);
  for (const std::string& task : s.tasks)
    for (const std::string& memory : s.memories)  // of sizes that are chosen so that it can be
      support::check_contraction("recall", memory, s.contraction, heads_of(s, task),
                                 s.contraction.block, std::ssize(s.contraction.powers),
                                 is_mqar(task) ? "--mqar-heads" : "--heads");
  infty::require(s.clip > 0, "recall", "--clip is ", s.clip, ": it must be positive");
}

}  // namespace recall
