// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <infty/metrics/perplexity.hpp>
#include <infty/model/family_settings.hpp>
#include <infty/train/checkpoint.hpp>

#include "../claims.hpp"
#include "../feed_width.hpp"
#include "../fingerprint.hpp"
#include "../json.hpp"
#include "../model_need.hpp"
#include "../model_reading.hpp"
#include "../settings.hpp"
#include "../warn_of.hpp"
#include "corpus.hpp"
#include "settings.hpp"

namespace language_model {

/// What the model that the settings describe is made of, for a vocabulary of this size; its
/// embedding and softmax are cut into clusters where the vocabulary is large enough.
/// @param group  vectors leave for the LTM in groups of so many, for each write wears what was
///               there before it: 1 is enough where text is read by segments
inline support::ModelConfig model_config(const Settings& s, Index vocabulary, Index group = 1) {
  support::ModelConfig config{
      .memory = s.memory,
      .mixer = s.mixer,
      .feed = s.feed,
      .tokens = s.tokens,
      .positions = s.positions,
      .seed = s.seed,
      .transformer = s.model,
      .memory_length = s.memory_length,
      .compressed = compressed_length(s),
      .stored = s.stored,
      .memorizing = {.k = s.neighbours,
                     .merge = infty::value_of<infty::MemorizingMerge>(s.merge),
                     .key_heads = s.key_heads,
                     .cache = s.local_cache,
                     .window = s.local_window},
      .compression_rate = s.compression_rate,
      .segment = group,
      .token_count = s.token_count,
      .spalm = !s.spalm.empty(),
      .sub_keys = s.sub_keys,
      .lookups = s.lookups,
      .long_term = s.long_term,
      .contraction = s.contraction};
  config.transformer.vocabulary = vocabulary;
  config.transformer.cutoffs.clear();
  for (const Index cutoff : s.cutoffs)
    if (cutoff > 0 && cutoff < vocabulary) config.transformer.cutoffs.push_back(cutoff);
  config.transformer.div_value = config.transformer.cutoffs.empty() ? 1 : s.div_value;
  return config;
}

/// The model of `model_config`.
inline std::unique_ptr<support::Model> make_model(const Settings& s, Index vocabulary,
                                                  Index group = 1) {
  return support::make_model(model_config(s, vocabulary, group));
}

/// Warns of what a long-term memory that contracts to tau cannot keep of segments, or of the groups
/// that leave.
inline void warn_of_memory(const Settings& s, Index group = 1) {
  if (!support::is_infty(s.memory) || support::contraction_of(s.memory, s.contraction) != "fixed")
    return;
  infty::LongTermConfig memory = s.long_term;
  memory.basis = compressed_length(s);
  support::warn_of("language_model", memory, std::max(s.segment, group));
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

/// Bytes of a training step that reads `length` tokens of so many rows at a time: of all segments,
/// or of one and, in front of each, the state with the keys and values that are kept beside it.
inline double step_need(const support::ModelNeed& need, const Settings& s, double rows,
                        double length) {
  const auto segments = static_cast<double>(s.bptt);
  const double tokens = segments * rows * length * 2 * sizeof(Index);
  // The vectors of looked up tokens, and their gradients.
  const double found = s.spalm.empty()
                           ? 0
                           : rows * length * static_cast<double>(s.spalm_neighbours) *
                                 static_cast<double>(s.model.model_dim) * 2 * sizeof(float);
  const double one = need.segment(rows, length, true) + found;
  return tokens + (s.replay ? one + 3 * segments * need.state(rows) : segments * one);
}

/// Throws infty::ValueError that names the option if there can be no such model, or it needs more
/// memory than there is, whatever the text.
/// @param training  with a batch of rows, not with one
inline void check_model(const Settings& s, bool training) {
  support::check_transformer("language_model", s.model, true);
  if (support::is_infty(s.memory)) {
    support::check_basis("language_model",
                         s.compressed >= 0 ? "--compressed" : "half of --memory-length",
                         compressed_length(s), s.long_term.widths);
    support::check_contraction("language_model", s.memory, s.contraction, s.model.heads,
                               s.memory_length - compressed_length(s),
                               compressed_length(s) / std::ssize(s.long_term.widths));
  }
  const std::string& remembers = s.mixer == "attention" ? s.memory : s.mixer;
  for (const char* const some : {"infini", "infini-linear", "memorizing", "memformer", "memsizer"})
    infty::require(remembers != some || s.memory_length > 0, "language_model",
                   "--memory-length is 0: of ", some, " it must be at least 1");
  infty::require(remembers != "memformer" || compressed_length(s) > 0, "language_model",
                 "--memory-length is ", s.memory_length,
                 ": half of it, or --compressed, are slots of memformer, one at least");
  const auto rows = [&](const Settings& of) { return training ? of.batch : 1; };
  require_memory(s, 1, rows, [&](const support::ModelNeed& need, const Settings& of) {
    const auto count = static_cast<double>(rows(of));
    return training ? step_need(need, of, count, 1) : need.segment(count, 1, false);
  });
}

/// The same of several memories.
inline void check_models(Settings s, const std::vector<std::string>& memories) {
  support::require_some_once("language_model", "memories", memories);
  for (const std::string& memory : memories) {
    support::choose_model(s, memory);
    validate(s);
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
          const auto count = static_cast<double>(rows);
          const auto length = static_cast<double>(std::min(of.segment, all / rows + 1));
          return training ? step_need(need, of, count, length) : need.segment(count, length, false);
        };
        return std::max(bytes(of.batch, tokens, true), bytes(of.evaluation_batch, most, false));
      });
}

/// Where a training stands, beside what its tensors say, and what it is of.
struct Position {
  Index epoch = 0;
  std::vector<Index> next;  ///< target of each row
  Index tokens = 0;         ///< learned from until now
  double seconds = 0;       ///< of all steps until now
  std::uint64_t log_bytes = 0;
  std::uint64_t text = 0, vocabulary = 0;  ///< fingerprints
};

template <class See>
void each_field(Position& position, See&& see) {
  see("epoch", position.epoch);
  see("next", position.next);
  see("tokens", position.tokens);
  see("seconds", position.seconds);
  see("log_bytes", position.log_bytes);
  see("text", position.text);
  see("vocabulary", position.vocabulary);
}

inline std::filesystem::path checkpoint_of(const std::filesystem::path& folder) {
  return folder / "checkpoint.safetensors";
}

/// Throws infty::IoError for a file that is no checkpoint of this program and version.
inline Settings settings_of(const infty::SafetensorsFile& checkpoint) {
  infty::require_checkpoint(checkpoint);
  const std::string path = checkpoint.path().string();
  return support::settings_from<Settings>(
      support::parse_json(checkpoint.metadata("settings"), path), path);
}

/// The settings of the run in a folder. Throws infty::IoError if there is none.
inline Settings settings_of(const std::filesystem::path& folder) {
  return settings_of(infty::SafetensorsFile(checkpoint_of(folder)));
}

/// Throws infty::IoError likewise.
inline Position position_of(const infty::SafetensorsFile& checkpoint) {
  infty::require_checkpoint(checkpoint);
  return support::parse<Position>(checkpoint.metadata("position"),
                                  checkpoint.path().string() + ": position");
}

/// The trained model of a run. Throws infty::IoError if the vocabulary is not the one that it was
/// trained with, and what a damaged checkpoint makes.
inline std::unique_ptr<support::Model> load_model(const Settings& s, const Tokenizer& tokenizer,
                                                  const std::filesystem::path& folder,
                                                  Index group = 1) {
  infty::CheckpointLoader loader(checkpoint_of(folder));
  const std::uint64_t there = tokenizer.fingerprint();
  const std::uint64_t needed = position_of(loader.file()).vocabulary;
  infty::require<infty::IoError>(
      there == needed, "language_model", (folder / tokenizer.files()).string(),
      " is not what the checkpoint was trained with: its fingerprint is ", support::as_hex(there),
      ", ", support::as_hex(needed), " is needed");
  const Settings trained = settings_of(loader.file());
  validate(trained);
  infty::TransformerConfig transformer = trained.model;
  transformer.vocabulary = tokenizer.size();
  const bool memory = trained.memory != "none";
  support::require_fits(loader.file(), transformer, "model.",
                        {{"memory-length", memory ? trained.memory_length : 0},
                         {"compressed", memory ? compressed_length(trained) : 0},
                         {"samples", trained.long_term.samples},
                         {"sticky-bins", trained.long_term.bins},
                         {"block", trained.contraction.block},
                         {"segment", trained.segment}});
  check_model(s, false);
  auto model = make_model(s, tokenizer.size(), group);
  model->load_parameters(loader);
  loader.apply();
  return model;
}

/// The settings with the feed-forward layers so wide that there are about `parameters`, if this is
/// asked for. Throws infty::ValueError for settings that there is no memory for.
inline Settings sized(Settings s, const Corpus& corpus) {
  check_training(s, corpus);
  if (s.parameters == 0) return s;
  const bool fits = support::fit_feed_width(s.model.feed_forward, s.parameters, [&] {
    return make_model(s, corpus.tokenizer.size())->parameters();
  });
  infty::require(fits, "language_model", "--parameters is ", s.parameters,
                 ": the model has more without any feed-forward layer");
  return s;
}

/// How a part of the text is read to be evaluated: in no more rows than it has tokens.
inline infty::BatchConfig evaluated_by(const Settings& s, const Tokenizer& tokenizer,
                                       const Split& split) {
  return {.batch = std::min(s.evaluation_batch, std::ssize(split.stream.tokens)),
          .segment = s.segment,
          .start = tokenizer.start(),
          .reset_documents = s.documents};
}

/// The losses of all tokens of a part of the text, each predicted once. `done(tokens)` is called
/// behind each segment.
/// @param losses  losses(state, batch): of a segment's targets
template <class Done, class Losses>
infty::TextScore evaluate(const support::Model& model, const Settings& s,
                          const Tokenizer& tokenizer, const Split& split, Done&& done,
                          Losses&& losses) {
  support::Model::State state;
  Index tokens = 0;
  return infty::evaluate_segments(split.stream, evaluated_by(s, tokenizer, split),
                                  [&](infty::TextBatch batch) {
                                    split.retrieved.put(batch);
                                    model.reset_rows(state, batch);
                                    auto lost = losses(state, batch);
                                    done(tokens += batch.predicted);
                                    return lost;
                                  });
}

}  // namespace language_model
