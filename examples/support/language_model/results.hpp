// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "../json.hpp"
#include "../settings.hpp"
#include "model.hpp"

namespace language_model {

/// The score of a part of the text in all its measures.
struct SplitScore {
  Index tokens = 0, characters = 0, bytes = 0, unknown = 0;
  double nats = 0, nats_per_token = 0, perplexity = 0, bits_per_character = 0, bits_per_byte = 0;
};

template <class See>
void each_field(SplitScore& score, See&& see) {
  see("tokens", score.tokens);
  see("characters", score.characters);
  see("bytes", score.bytes);
  see("unknown", score.unknown);
  see("nats", score.nats);
  see("nats_per_token", score.nats_per_token);
  see("perplexity", score.perplexity);
  see("bits_per_character", score.bits_per_character);
  see("bits_per_byte", score.bits_per_byte);
}

inline SplitScore split_score(const infty::TextScore& score, const Split& split) {
  return {.tokens = score.tokens,
          .characters = split.characters,
          .bytes = split.bytes,
          .unknown = split.unknown,
          .nats = score.nats,
          .nats_per_token = score.per_token(),
          .perplexity = score.perplexity(),
          .bits_per_character = score.bits_per(split.characters),
          .bits_per_byte = score.bits_per(split.bytes)};
}

/// What is reported of a trained model: results.json, which has its settings beside this.
struct Results {
  Index parameters = 0, vocabulary = 0, steps = 0, trained_tokens = 0;
  std::string token;
  double seconds = 0, tokens_per_second = 0;
  std::uint64_t state_bytes = 0;
  SplitScore valid, test;
};

template <class See>
void each_field(Results& results, See&& see) {
  see("parameters", results.parameters);
  see("vocabulary", results.vocabulary);
  see("steps", results.steps);
  see("trained_tokens", results.trained_tokens);
  see("token", results.token);
  see("seconds", results.seconds);
  see("tokens_per_second", results.tokens_per_second);
  see("state_bytes", results.state_bytes);
  see("valid", results.valid);
  see("test", results.test);
}

/// Throws infty::ValueError that names the first setting in which a run in the folder differs.
inline void require_same_settings(const Settings& s, const Settings& of_run,
                                  const std::filesystem::path& folder) {
  const auto asked = support::to_json(s), there = support::to_json(of_run);
  for (const auto& [name, value] : asked.items())
    infty::require(there.at(name) == value, "language_model", folder.string(),
                   " holds a run with --", name, ' ', there.at(name).dump(), ", not ", value.dump(),
                   ": give another --out, or --fresh to begin anew");
}

/// Throws infty::Error that says in what the run in a folder, if there is one, is another one than
/// that of these settings and this text.
inline void require_same_run(const Settings& s, const Corpus& corpus,
                             const std::filesystem::path& folder) {
  if (!std::filesystem::exists(checkpoint_of(folder))) return;
  const infty::SafetensorsFile checkpoint(checkpoint_of(folder));
  require_same_settings(s, settings_of(checkpoint), folder);
  const Position position = position_of(checkpoint);
  infty::require<infty::IoError>(
      position.text == corpus.fingerprint && position.vocabulary == corpus.tokenizer.fingerprint(),
      "language_model", folder.string(),
      " holds a run on another text: give another --out, or --fresh to "
      "begin anew");
}

/// The results in a folder, if the run is finished; null otherwise. Throws infty::IoError if they
/// are damaged, infty::ValueError if they are of other settings.
inline nlohmann::json finished_results(const std::filesystem::path& folder, const Settings& s) {
  const auto path = folder / "results.json";
  if (!std::filesystem::exists(path)) return nullptr;
  auto json = support::read_json(path);
  infty::require<infty::IoError>(json.is_object() && json.contains("settings"), "language_model",
                                 path.string(), " has no settings: it is no file of this program");
  require_same_settings(s, support::settings_from<Settings>(json.at("settings"), path.string()),
                        folder);
  auto rest = json;
  rest.erase("settings");
  Results results;
  support::read(rest, results, path.string());
  return json;
}

}  // namespace language_model
