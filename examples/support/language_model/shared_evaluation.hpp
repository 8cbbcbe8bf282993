// SPDX-License-Identifier: MIT
#pragma once

#include <iterator>
#include <string>
#include <vector>

#include <infty/metrics/perplexity.hpp>
#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/messages.hpp>
#include <infty/parallel/shards.hpp>

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
                                        [&](const infty::TextBatch& batch) {
                                          model.reset_rows(state, batch);
                                          auto lost = model.losses(state, batch);
                                          done(tokens += batch.predicted);
                                          return lost;
                                        })
                       .nats);
  }
  return {.nats = shards.sum_of(nats), .tokens = std::ssize(split.stream.tokens)};
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
