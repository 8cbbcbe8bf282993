// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/io/checkpoint.hpp>

#include "../support/model_need.hpp"
#include "../support/settings.hpp"
#include "corpus.hpp"
#include "settings.hpp"

namespace language_model {

/// What the model that the settings describe is made of, for a vocabulary of this size; its
/// embedding and softmax are cut into clusters where the vocabulary is large enough.
/// @param by_token  for text that comes token by token: vectors leave for the LTM by segments then,
///                  too, for each write shrinks what was there before it
inline support::ModelConfig model_config(const Settings& s, Index vocabulary,
                                         bool by_token = false) {
  support::ModelConfig config{.memory = s.memory,
                              .seed = s.seed,
                              .transformer = s.model,
                              .memory_length = s.memory_length,
                              .compressed = compressed_length(s),
                              .compression_rate = s.compression_rate,
                              .segment = by_token ? s.segment : 1,
                              .long_term = s.long_term,
                              .adam = s.adam};
  config.transformer.vocabulary = vocabulary;
  config.transformer.cutoffs.clear();
  for (const Index cutoff : s.cutoffs)
    if (cutoff > 0 && cutoff < vocabulary) config.transformer.cutoffs.push_back(cutoff);
  config.transformer.div_value = config.transformer.cutoffs.empty() ? 1 : s.div_value;
  return config;
}

/// The model of `model_config`.
inline std::unique_ptr<support::Model> make_model(const Settings& s, Index vocabulary,
                                                  bool by_token = false) {
  return support::make_model(model_config(s, vocabulary, by_token));
}

/// Throws infty::ValueError that names the option if the model, a state of `rows(settings)` rows
/// and what `more` adds to their bytes need more memory than there is.
template <class Rows, class More>
void require_memory(const Settings& s, Index vocabulary, const Rows& rows, const More& more) {
  support::require_memory("language_model", s, [&](const Settings& of) {
    const support::ModelNeed need(model_config(of, vocabulary));
    const double widened = 4 * sizeof(float) * static_cast<double>(of.parameters);
    return std::max(need.model(), widened) + need.state(static_cast<double>(rows(of))) +
           more(need, of);
  });
}

/// Throws infty::ValueError that names the option if there can be no such model, or it needs more
/// memory than there is, whatever the text.
/// @param training  with a batch of rows, not with one
inline void check_model(const Settings& s, bool training) {
  support::check_transformer("language_model", s.model, true);
  if (s.memory.starts_with("infty"))
    support::check_basis("language_model",
                         s.compressed >= 0 ? "--compressed" : "half of --memory-length",
                         compressed_length(s), s.long_term.widths);
  const auto rows = [&](const Settings& of) { return training ? of.batch : 1; };
  require_memory(s, 1, rows, [&](const support::ModelNeed& need, const Settings& of) {
    return need.segment(static_cast<double>(rows(of)), 1, training);
  });
}

/// The same of several memories.
inline void check_models(Settings s, const std::vector<std::string>& memories) {
  for (const std::string& memory : memories) {
    s.memory = memory;
    check_model(s, true);
  }
}

/// Throws infty::ValueError that names the option if the text is too short for the rows of a batch,
/// or training on it needs more memory than there is.
inline void check_training(const Settings& s, const Corpus& corpus) {
  const auto tokens_of = [](const Split& split) { return std::ssize(split.stream.tokens); };
  const Index tokens = tokens_of(corpus.train);
  infty::require(s.batch <= tokens, "language_model", "--batch is ", s.batch,
                 ": the text to train on has ", tokens, " tokens, and each row needs one");
  const Index most = std::max(tokens_of(corpus.valid), tokens_of(corpus.test));
  require_memory(
      s, corpus.tokenizer.size(), [](const Settings& of) { return of.batch; },
      [&](const support::ModelNeed& need, const Settings& of) {
        const auto bytes = [&](Index batch, Index all, bool training) {
          const Index rows = std::min(batch, all);
          const Index length = std::min(of.segment, all / rows + 1);
          return need.segment(static_cast<double>(rows), static_cast<double>(length), training);
        };
        return std::max(bytes(of.batch, tokens, true), bytes(of.evaluation_batch, most, false));
      });
}

/// The settings of the run in a folder. Throws infty::IoError if there is none.
inline Settings settings_of(const std::filesystem::path& folder) {
  const infty::SafetensorsFile file(folder / "checkpoint.safetensors");
  try {
    return support::settings_from<Settings>(nlohmann::json::parse(file.metadata("settings")));
  } catch (const nlohmann::json::exception& error) {
    infty::raise<infty::IoError>("language_model", folder.string(),
                                 " has no checkpoint of this program: ", error.what());
  }
}

/// The trained model of a run.
inline std::unique_ptr<support::Model> load_model(const Settings& s, const Tokenizer& tokenizer,
                                                  const std::filesystem::path& folder,
                                                  bool by_token = false) {
  check_model(s, false);
  auto model = make_model(s, tokenizer.size(), by_token);
  infty::CheckpointLoader loader(folder / "checkpoint.safetensors");
  model->load_parameters(loader);
  loader.apply();
  return model;
}

/// The settings with the feed-forward layers so wide that there are about `parameters`, if this is
/// asked for. Each unit of width has a row, a column and a bias in every layer. Throws
/// infty::ValueError for settings that there is no memory for.
inline Settings sized(Settings s, const Corpus& corpus) {
  check_training(s, corpus);
  if (s.parameters == 0) return s;
  const Index vocabulary = corpus.tokenizer.size();
  const Index unit = s.model.layers * (2 * s.model.model_dim + 1);
  const Index lacking = s.parameters - make_model(s, vocabulary)->parameters();
  s.model.feed_forward += (lacking >= 0 ? lacking + unit / 2 : lacking - unit / 2) / unit;
  infty::require(s.model.feed_forward >= 1, "language_model", "--parameters is ", s.parameters,
                 ": the model has more without any feed-forward layer");
  return s;
}

/// How well a model predicts a text.
struct Score {
  double nats = 0;   ///< of all tokens
  Index tokens = 0;  ///< predicted

  double per_token() const { return nats / static_cast<double>(tokens); }
  double perplexity() const { return std::exp(per_token()); }
  /// Bits for each of so many characters or bytes.
  double bits_per(Index units) const {
    return nats / std::numbers::ln2 / static_cast<double>(units);
  }
};

/// The score of a part of the text in all its measures.
inline nlohmann::json to_json(const Score& score, const Split& split) {
  return {{"tokens", score.tokens},
          {"characters", split.characters},
          {"bytes", split.bytes},
          {"unknown", split.unknown},
          {"nats", score.nats},
          {"nats_per_token", score.per_token()},
          {"perplexity", score.perplexity()},
          {"bits_per_character", score.bits_per(split.characters)},
          {"bits_per_byte", score.bits_per(split.bytes)}};
}

/// The losses of all tokens of a part of the text, each predicted once.
inline Score evaluate(const support::Model& model, const Settings& s, const Tokenizer& tokenizer,
                      const Split& split) {
  const auto tokens = static_cast<Index>(split.stream.tokens.size());
  infty::BatchStream batches(split.stream, {.batch = std::min(s.evaluation_batch, tokens),
                                            .segment = s.segment,
                                            .start = tokenizer.start(),
                                            .reset_documents = s.documents});
  auto state = model.make_state(batches.config().batch);
  Score score;
  for (bool last = false; !last;) {
    const auto batch = batches.next();
    model.reset_rows(state, batch);
    for (const float loss : model.losses(state, batch)) score.nats += static_cast<double>(loss);
    score.tokens += batch.predicted;
    last = batch.last;
  }
  return score;
}

}  // namespace language_model
