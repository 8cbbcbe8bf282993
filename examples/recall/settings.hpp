// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../support/model.hpp"
#include "../support/ranges.hpp"
#include "../support/settings.hpp"
#include "../support/transformer.hpp"

namespace recall {

using infty::Index;

/// Everything that decides which numbers come out.
struct Settings {
  std::vector<std::string> memories = support::memory_names;
  std::vector<std::string> tasks{"copy", "recall", "sorting"};

  Index symbols = 8, items = 5, copy_gap = 100;
  Index keys = 8, values = 4, pairs = 4, recall_gap = 100;
  std::vector<Index> lengths{64, 128, 256};

  infty::TransformerConfig model{.model_dim = 32,
                                 .layers = 2,
                                 .heads = 2,
                                 .feed_forward = 64,
                                 .pre_norm = true,
                                 .embedding_deviation = 0};
  Index segment = 16, vectors = 64, compression_rate = 4;
  double share = .5;
  infty::LongTermConfig long_term{
      .widths = {.02, .1}, .samples = 64, .tau = .75, .ridge = .5, .bins = 32};
  double kl_weight = 1e-6;

  Index batch = 16, steps = 1200, warmup = 50;
  std::vector<double> rates{1e-3, 3e-3, 1e-2};
  double clip = 1;
  std::vector<std::uint64_t> seeds{1, 2, 3};
  Index evaluation_sequences = 256;
};

/// Calls see(group, name, field, help, choice...) for every setting.
template <class See>
void each_setting(Settings& s, See&& see) {
  const char* const run = "What to compare";
  see(run, "memories", s.memories, "in this order", "none", "xl", "compressive", "lamemo", "infty",
      "infty-sticky");
  see(run, "tasks", s.tasks, "in this order", "copy", "recall", "sorting");
  see(run, "rates", s.rates, "learning rates that every memory is tried with");
  see(run, "seeds", s.seeds, "of weights and sequences; rates are tried with the first");

  const char* const task = "The tasks";
  see(task, "symbols", s.symbols, "different symbols to copy or to sort");
  see(task, "items", s.items, "symbols to copy");
  see(task, "copy-gap", s.copy_gap, "blanks between them and the copy");
  see(task, "keys", s.keys, "different keys of associative recall");
  see(task, "values", s.values, "different values");
  see(task, "pairs", s.pairs, "pairs of a key and a value in a sequence");
  see(task, "recall-gap", s.recall_gap, "blanks between them and the questions");
  see(task, "lengths", s.lengths, "of the sequences to sort, a task each");

  const char* const model = "The models";
  support::each_transformer_setting(model, s.model, see);
  see(model, "segment", s.segment, "tokens that are read at once");
  see(model, "vectors", s.vectors, "a state has the bytes of so many vectors a layer");
  see(model, "share", s.share, "of a state that is compressed, or the LTM, where there is one");
  see(model, "compression-rate", s.compression_rate, "vectors that become a compressed one");
  support::each_chosen(model, s.long_term,
                       {{"widths"},
                        {"samples"},
                        {"tau"},
                        {"ridge"},
                        {"bounded"},
                        {"hold_short_writes", "hold"},
                        {"bins", "sticky-bins"}},
                       see);
  see(model, "kl-weight", s.kl_weight, "of the divergence of the LTM's densities");

  const char* const training = "Training and evaluation";
  see(training, "batch", s.batch, "sequences a step");
  see(training, "steps", s.steps, "in all");
  see(training, "warmup", s.warmup, "steps in which the rate rises; then it falls to 0");
  see(training, "clip", s.clip, "greatest global norm of the gradients");
  see(training, "evaluation-sequences", s.evaluation_sequences,
      "to choose a rate by, and as many others to report");
}

/// Throws infty::ValueError that names the first setting out of its range.
inline void validate(const Settings& s) {
  support::validate_ranges("recall", s);
  support::require_some_once("recall", "memories", s.memories);
  support::require_some_once("recall", "tasks", s.tasks);
  support::require_some_once("recall", "rates", s.rates);
  support::require_some_once("recall", "seeds", s.seeds);
  support::require_some_once("recall", "lengths", s.lengths);
  infty::require_at_least("recall", "--steps", s.steps, s.warmup + 1);
  support::check_transformer("recall", s.model, false);
  support::check_basis("recall", "--widths", std::ssize(s.long_term.widths), s.long_term.widths);
  infty::require(s.clip > 0, "recall", "--clip is ", s.clip, ": it must be positive");
}

}  // namespace recall
