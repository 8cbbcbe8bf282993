// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <infty/io/safetensors_file.hpp>
#include <infty/io/safetensors_writer.hpp>

#include "../interrupt.hpp"
#include "../progress_line.hpp"
#include "datastore_of.hpp"

namespace language_model {

/// Looks the tokens up that SPALM attends to, for every token of a text: those behind the k nearest
/// keys, by squared distance, to what the model makes of the context that the datastore was made
/// with. Where the text is that which is in the datastore, nothing finds itself.
/// @param behind  called with how many tokens are done; may throw
template <class Behind>
RetrievedTokens look_up_tokens(const Settings& s, const Tokenizer& tokenizer, const Split& split,
                               Behind&& behind) {
  Retriever retriever(s.spalm, infty::SearchMetric::squared_l2, {.kind = s.spalm_index}, tokenizer,
                      nullptr);
  const StoreOrigin& origin = retriever.origin();
  const auto& stream = split.stream;
  const bool itself = fingerprint_of(stream) == origin.stream;
  const Index k = s.spalm_neighbours, asked = itself ? k + 1 : k;
  infty::require(asked <= retriever.store().size(), "language_model", "--spalm-neighbours is ", k,
                 ": ", s.spalm, " has ", retriever.store().size(), " keys");
  RetrievedTokens out{k, std::vector<TokenId>(stream.tokens.size() * static_cast<std::size_t>(k))};
  support::ProgressLine line("look up", std::ssize(stream.tokens), 0, "token");
  Index entry = 0;  // of the datastore, where it is of this text
  infty::evaluate_segments(
      stream,
      {.batch = origin.batch,
       .segment = origin.segment,
       .start = tokenizer.start(),
       .reset_documents = origin.documents},
      [&](const TextBatch& batch) {
        const auto found = retriever.find(retriever.queries(batch, {}), asked);
        const std::vector<Index> entries = found.indices.to_vector();
        for (Index place = 0; place < batch.batch * batch.length; ++place) {
          if (batch.targets[static_cast<std::size_t>(place)] < 0) continue;
          const Index row = place / batch.length, i = place % batch.length;
          Index to = (batch.first[static_cast<std::size_t>(row)] + i) * k, taken = 0;
          for (Index j = 0; j < asked && taken < k; ++j) {
            const Index at = entries[static_cast<std::size_t>(place * asked + j)];
            if (itself && at == entry) continue;
            out.tokens[static_cast<std::size_t>(to++)] =
                static_cast<TokenId>(retriever.store().token(at));
            ++taken;
          }
          ++entry;
        }
        line.update(entry);
        behind(entry);
        return std::vector<float>(batch.targets.size(), 0.F);
      });
  return out;
}

/// Looks them up for all of a corpus, or takes them from where a run of the same settings has left
/// them: training reads what was found, and searches nothing.
inline void look_up_tokens(const Settings& s, Corpus& corpus, const std::filesystem::path& folder) {
  const auto path = folder / "retrieved.safetensors";
  const auto parts = {std::pair("train", &corpus.train), std::pair("valid", &corpus.valid),
                      std::pair("test", &corpus.test)};
  const auto store = Store::open(s.spalm);
  const std::string of = std::string(store.about()) + ' ' + std::to_string(store.size()) + ' ' +
                         std::to_string(s.spalm_neighbours) + ' ' + s.spalm_index + ' ' +
                         support::as_hex(corpus.fingerprint);
  if (std::filesystem::exists(path)) {
    const infty::SafetensorsFile file(path);
    if (file.metadata().contains("of") && file.metadata("of") == of) {
      for (const auto& [name, split] : parts) {
        file.check_shape(name, {std::ssize(split->stream.tokens), s.spalm_neighbours});
        split->retrieved = {s.spalm_neighbours, file.read<TokenId>(name)};
        for (const TokenId id : split->retrieved.tokens)
          infty::require<infty::IoError>(id >= 0 && id < corpus.tokenizer.size(), "language_model",
                                         path.string(), " is damaged: it has token ", id);
      }
      return;
    }
  }
  const support::InterruptGuard interrupt;
  infty::SafetensorsWriter writer;
  writer.metadata("of", of);
  for (const auto& [name, split] : parts) {
    split->retrieved = look_up_tokens(s, corpus.tokenizer, *split, [](Index) {
      support::stop_if_interrupted(
          [] { return std::string("stopped looking up; nothing is kept of it"); });
    });
    writer.add(name, infty::Shape{std::ssize(split->stream.tokens), s.spalm_neighbours},
               split->retrieved.tokens);
  }
  writer.save(path);
}

}  // namespace language_model
