// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <infty/model/gpt2_config_file.hpp>

#include "../support/gpt2/folder.hpp"
#include "../support/gpt2/model.hpp"
#include "settings.hpp"

namespace dialogue {

using support::gpt2::Model;

/// The files that a training is made from.
struct Files {
  std::filesystem::path data = "dialogues";  ///< what `prepare` wrote
  std::filesystem::path base;  ///< a GPT-2, or an encoding alone, with which weights are fresh
};

/// Whether a folder has a model beside its encoding.
inline bool has_model(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / "config.json", ignored);
}

/// All that is trained on and scored, in tokens.
struct Corpus {
  Tokenizer tokenizer;
  infty::Gpt2Config config;  ///< of the model without the marks
  Split train, valid, test;
  std::string base;  ///< what tells the base from others
};

/// What the data is told apart by.
inline std::string fingerprint_of(const Corpus& corpus) {
  return corpus.train.fingerprint + corpus.valid.fingerprint + corpus.test.fingerprint;
}

/// Reads the data, and the sizes of the model. Throws infty::Error that names what is missing or
/// damaged.
inline Corpus read_corpus(const Files& files, const Settings& s) {
  auto encoding = infty::BytePairEncoding::from_folder(files.base);
  infty::Gpt2Config config = s.fresh;
  std::string base = support::as_hex(support::gpt2::encoding_fingerprint(files.base));
  if (has_model(files.base)) {
    config = infty::read_gpt2_config(files.base / "config.json");
    infty::require(support::gpt2::read_memory(files.base).memory == "none", "dialogue",
                   files.base.string(), " has a memory already: --base must be a plain GPT-2");
    base += ", " + infty::gpt2_config_json<float>(config) + ", " +
            support::as_hex(support::gpt2::model_fingerprint(files.base));
  } else {
    config.vocabulary = encoding.size();
    config.validate();
  }
  Tokenizer tokenizer(std::move(encoding), config.vocabulary);
  Corpus corpus{.tokenizer = tokenizer,
                .config = config,
                .train = read_split(files.data, "train", tokenizer),
                .valid = read_split(files.data, "valid", tokenizer),
                .test = read_split(files.data, "test", tokenizer),
                .base = std::move(base)};
  validate(s, config.places);
  return corpus;
}

/// The model that a training begins with: the base, with the marks' tokens and the form's memory.
inline std::unique_ptr<Model> begin_model(const Settings& s, const Files& files,
                                          const Corpus& corpus) {
  const auto memory = memory_of(s, corpus.config.places);
  const support::gpt2::OpenOptions options{
      .seed = s.seed, .new_tokens = static_cast<Index>(mark_names.size()), .dropout = s.dropout};
  return has_model(files.base) ? support::gpt2::open_model(files.base, memory, options)
                               : support::gpt2::make_model(corpus.config, memory, options);
}

/// A chunk as a model is trained and scored by.
inline infty::TextBatch batch_of(const Chunk& chunk) {
  return {.batch = 1,
          .length = std::ssize(chunk.tokens),
          .inputs = chunk.tokens,
          .targets = chunk.targets,
          .predicted = chunk.predicted,
          .reset = {}};
}

}  // namespace dialogue
