// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "../support/decimal.hpp"
#include "../support/interrupt.hpp"
#include "../support/kept_weights.hpp"
#include "../support/language_model/shared_evaluation.hpp"
#include "../support/language_model/spalm.hpp"
#include "../support/language_model/training.hpp"
#include "../support/options.hpp"
#include "look_up.hpp"

namespace language_model {

struct EvaluateOptions {
  std::filesystem::path model = "language-model";
  std::string split = "test", text, products = "", weights = "float32";
  Index segment = 0, group = 0, memory_length = -1, compressed = -1, batch = 0;
  LookUpOptions look_up;
  Index shards = 0;  ///< of the rows, which ranks share out; 0: none
  support::Sharing sharing = {};
};

inline void print_score(const char* what, const nlohmann::json& score, const std::string& token) {
  std::printf(
      "%-5s  %10lld tokens (%s level)  %.4f nats a token  perplexity %s  %.4f bits per "
      "character (%lld)  %.4f bits per byte (%lld)\n",
      what, score.at("tokens").get<long long>(), token.c_str(),
      score.at("nats_per_token").get<double>(),
      support::decimal(score.at("perplexity").get<double>(), 3).c_str(),
      score.at("bits_per_character").get<double>(), score.at("characters").get<long long>(),
      score.at("bits_per_byte").get<double>(), score.at("bytes").get<long long>());
}

/// A run's settings with what an evaluation or a generation changes, and in groups of how many
/// vectors leave for the long-term memory.
struct Changed {
  Settings settings;
  Index group;
};

/// @param shortest  tokens that are read at once, at the least; 0: a segment
inline Changed changed_settings(const EvaluateOptions& options, Index shortest = 0) {
  Settings s = settings_of(options.model);
  const Index trained = s.segment;
  if (options.segment > 0) s.segment = options.segment;
  if (options.memory_length >= 0) {
    // What is compressed, or a basis, stays as it was trained unless something else is asked for.
    const bool two_kinds =
        support::is_infty(s.memory) || s.memory == "compressive" || s.memory == "memformer";
    s.compressed = two_kinds ? compressed_length(s) : -1;
    s.memory_length = options.memory_length;
    s.neighbours = std::min(s.neighbours, s.memory_length);
  }
  if (options.compressed >= 0) s.compressed = options.compressed;
  if (options.batch > 0) s.evaluation_batch = options.batch;
  if (!options.products.empty()) s.products = options.products;
  validate(s);
  const bool shorter = (shortest > 0 ? shortest : s.segment) < trained;
  return {s, options.group > 0 ? options.group : shorter ? trained : 1};
}

/// The text that options name, as tokens.
struct NamedSplit {
  Split split;
  std::string name;
};

inline NamedSplit named_split(const Settings& s, const Tokenizer& tokenizer,
                              const std::string& split, const std::string& text) {
  Texts texts;
  std::vector<std::string_view> documents;
  if (text.empty()) {
    texts = open_texts(s);
    documents = split == "train" ? texts.train : split == "valid" ? texts.valid : texts.test;
  } else {
    documents = detail::open_documents(text, texts);
  }
  NamedSplit out{make_split(tokenizer, documents), text.empty() ? split : "text"};
  infty::require(!out.split.stream.tokens.empty(), "language_model", "the text has no token");
  return out;
}

/// Throws infty::ValueError unless the text may be shared out as the options say.
inline void check_shards(const EvaluateOptions& options, const Settings& s,
                         const infty::AnyCommunicator& ranks) {
  support::require_shards("language_model", ranks, options.shards);
  infty::require(options.shards <= s.evaluation_batch, "language_model", "--shards is ",
                 options.shards, ": it must lie in [0, --batch = ", s.evaluation_batch, ']');
  infty::require(options.shards == 0 || (s.spalm.empty() && !looks_up(options.look_up)),
                 "language_model", "--shards goes without what is looked up");
}

/// Throws infty::ValueError for weights in half of the bytes beside what is looked up, for a
/// datastore is of a model's own weights.
inline void check_weights(const EvaluateOptions& options, const Settings& s) {
  infty::require(options.weights == "float32" || (s.spalm.empty() && !looks_up(options.look_up)),
                 "language_model", "--weights ", options.weights,
                 " goes without what is looked up");
}

/// On several ranks the first one prints.
inline void evaluate(const EvaluateOptions& options, infty::AnyCommunicator& ranks) {
  const auto [s, group] = changed_settings(options);
  check_shards(options, s, ranks);
  check_weights(options, s);
  support::use_products(s.products);
  warn_of_memory(s, group);
  const Tokenizer tokenizer(s.level, options.model);
  auto [split, name] = named_split(s, tokenizer, options.split, options.text);
  const auto stop = [&split = split](Index tokens) {
    support::stop_if_interrupted([&] {
      return "stopped evaluating behind " + std::to_string(tokens) + " of " +
             std::to_string(split.stream.tokens.size()) + " tokens; nothing is kept of it";
    });
  };
  // A signal to one of several ranks ends it, and so all: nothing is kept that were to be saved.
  std::optional<support::InterruptGuard> interrupt;
  if (ranks.size() == 1) interrupt.emplace();
  const auto model = load_model(s, tokenizer, options.model, group);
  require_same_on_all(ranks,
                      support::to_json(s).dump() + ' ' + std::to_string(group) + ' ' +
                          std::to_string(options.shards) + ' ' + options.weights,
                      tokenizer, split, *model);
  support::keep_weights(model->named_parameters(), options.weights);
  if (!s.spalm.empty()) split.retrieved = look_up_tokens(s, tokenizer, split, stop);
  infty::TextScore score;
  if (looks_up(options.look_up)) {
    LookUp look_up(options.look_up, tokenizer, *model);
    std::printf("%s\n", look_up.said().c_str());
    const auto losses = [&](support::Model::State& state, const TextBatch& batch) {
      return look_up.losses(*model, state, batch);
    };
    score = evaluate_shown(name.c_str(), *model, s, tokenizer, split, stop, losses);
  } else if (options.shards > 0) {
    const infty::Shards<infty::AnyCommunicator> shards(ranks, options.shards);
    score = evaluate_shards_shown(name, *model, s, tokenizer, split, shards, stop);
  } else {
    score = evaluate_shown(name.c_str(), *model, s, tokenizer, split, stop);
  }
  std::printf("%s, segments of %lld, %lld vectors of memory, %lld of %lld tokens unknown\n",
              support::model_name(s).c_str(), static_cast<long long>(s.segment),
              static_cast<long long>(s.memory == "none" ? 0 : s.memory_length),
              static_cast<long long>(split.unknown), static_cast<long long>(score.tokens));
  print_score(name.c_str(), support::json_of(split_score(score, split)), s.level);
}

/// Adds which model it is.
inline CLI::Option* add_folder(CLI::App& app, EvaluateOptions& options) {
  return app.add_option("--model", options.model, "the folder that `train --out` named")
      ->capture_default_str()
      ->check(CLI::ExistingDirectory);
}

/// Adds what every command that runs a trained model takes.
inline CLI::Option* add_model(CLI::App& app, EvaluateOptions& options) {
  using support::add_option, support::from;
  add_option(app, "--segment", options.segment, "tokens that are read at once; 0: as in training",
             from(0));
  add_option(app, "--group", options.group,
             "vectors leave for the long-term memory in groups of so many; 0: as many as a segment "
             "of the training where text is read in shorter ones",
             from(0));
  add_option(app, "--compressed", options.compressed,
             "vectors that are compressed or basis functions; -1: as in training", from(-1));
  add_option(app, "--memory-length", options.memory_length,
             "vectors of memory a layer; -1: as in training", from(-1));
  return add_folder(app, options);
}

/// Adds which text is read.
inline void add_split(CLI::App& app, EvaluateOptions& options) {
  app.add_option("--split", options.split, "part of the text of the training")
      ->capture_default_str()
      ->check(CLI::IsMember({"train", "valid", "test"}));
  app.add_option("--text", options.text, "another file or folder instead");
}

/// Adds which text is read, and in how many rows.
inline void add_text(CLI::App& app, EvaluateOptions& options) {
  add_split(app, options);
  support::add_option(app, "--batch", options.batch, "rows side by side; 0: as in training",
                      support::from(0));
}

/// Adds how ranks share the rows out.
inline void add_sharing(CLI::App& app, EvaluateOptions& options) {
  support::add_option(app, "--shards", options.shards,
                      "parts of the rows that ranks share out, the same numbers on any number of "
                      "them; 0: none",
                      support::from(0));
  support::add_silence(app, options.sharing);
}

}  // namespace language_model
