// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <infty/metrics/perplexity.hpp>
#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/messages.hpp>
#include <infty/parallel/shards.hpp>

#include "../progress_line.hpp"
#include "../ranks.hpp"
#include "datastore_of.hpp"
#include "model.hpp"

namespace language_model {

/// The losses of all tokens of a part of the text, whose rows are cut into shards that ranks share
/// out: each is read by itself, and their losses are summed along one tree, so that nothing depends
/// on the number of ranks. `done(tokens)` is called behind each segment, with those of this rank.
/// @throws infty::ValueError unless there is a row for each shard
template <class Done>
infty::TextScore evaluate_shards(const support::Model& model, const Settings& s,
                                 const Tokenizer& tokenizer, const Split& split,
                                 const infty::Shards<infty::AnyCommunicator>& shards, Done&& done) {
  const infty::BatchConfig config = evaluated_by(s, tokenizer, split);
  Index tokens = 0;
  std::vector<double> nats;
  for (Index shard = shards.own().first; shard < shards.own().last; ++shard) {
    const auto [first, last] = shards.rows_of(shard, config.batch);
    support::Model::State state;
    nats.push_back(infty::evaluate_rows(split.stream, config, first, last - first,
                                        [&](infty::TextBatch batch) {
                                          split.retrieved.put(batch);
                                          model.reset_rows(state, batch);
                                          auto lost = model.losses(state, batch);
                                          done(tokens += batch.predicted);
                                          return lost;
                                        })
                       .nats);
  }
  return {.nats = shards.sum_of(nats), .tokens = std::ssize(split.stream.tokens)};
}

/// The same with a line on its progress.
/// @param behind  called behind each segment of this rank, with the tokens read; may throw
template <class Behind>
infty::TextScore evaluate_shards_shown(const std::string& name, const support::Model& model,
                                       const Settings& s, const Tokenizer& tokenizer,
                                       const Split& split,
                                       const infty::Shards<infty::AnyCommunicator>& shards,
                                       Behind&& behind) {
  const Index all = std::ssize(split.stream.tokens);
  support::ProgressLine line(name, all, 0, "token");
  return evaluate_shards(model, s, tokenizer, split, shards, [&](Index tokens) {
    line.update(std::min(all, tokens * shards.ranks().size()));  // others are about as far
    behind(tokens);
  });
}

/// The same for a training with --shards, in as many of these, or one a row where there are fewer
/// rows: the same numbers on any number of ranks. Where there are more ranks than that, the first
/// does it alone, and the others get nothing.
template <class Behind>
infty::TextScore evaluate_trained(const std::string& name, const support::Model& model,
                                  const Settings& s, const Tokenizer& tokenizer, const Split& split,
                                  infty::AnyCommunicator& ranks, Behind&& behind) {
  const Index count = std::min(s.shards, evaluated_by(s, tokenizer, split).batch);
  infty::AnyCommunicator alone;
  const bool shared = ranks.size() <= count;
  if (!shared && ranks.rank() > 0) return {};
  const infty::Shards<infty::AnyCommunicator> shards(shared ? ranks : alone, count);
  return evaluate_shards_shown(name, model, s, tokenizer, split, shards, behind);
}

/// Throws infty::ValueError that says in what ranks differ that must not, to evaluate: the program,
/// the settings, the vocabulary, the text, or the model.
inline void require_same_on_all(infty::AnyCommunicator& ranks, const std::string& settings,
                                const Tokenizer& tokenizer, const Split& split,
                                support::Model& model) {
  if (ranks.size() == 1) return;
  infty::require_same(ranks, "the program", support::program_fingerprint());
  infty::require_same(ranks, "the settings", settings);
  infty::require_same(ranks, "the vocabulary", tokenizer.fingerprint());
  infty::require_same(ranks, "the text", fingerprint_of(split.stream));
  infty::require_same(ranks, "the model", fingerprint_of(model));
}

}  // namespace language_model
