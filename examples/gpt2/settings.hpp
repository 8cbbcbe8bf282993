// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <infty/model/presets/gpt2.hpp>

#include "../support/gpt2/memory.hpp"
#include "../support/need.hpp"
#include "../support/training.hpp"

namespace gpt2 {

using infty::Index;
using support::gpt2::MemorySettings;

/// A text, and how it is read.
struct TextSettings {
  std::vector<std::string> data, valid, test;  ///< files and folders
  bool exact = false;                          ///< as the ∞-former's authors' program reads it
  bool documents = true;                       ///< a document begins with a fresh memory
  bool articles = false;                       ///< a heading of WikiText begins a document
};

template <class See>
void each_text_setting(TextSettings& s, See&& see) {
  const char* const text = "The text";
  see(text, "data", s.data, "files, or folders of which each file is a document");
  see(text, "valid", s.valid, "the same for validation; without it --data is shared out 90:5:5");
  see(text, "test", s.test, "the same for the test");
  see(text, "documents", s.documents, "each is read by itself, with a fresh memory");
  see(text, "articles", s.articles, "a heading of WikiText, ` = Title = `, begins a document");
  see(text, "exact", s.exact,
      "read text as the paper's program: lines, groups of 1,000, blocks of --segment");
}

/// Everything that decides which numbers come out of a training, but for what is trained.
struct Settings {
  std::uint64_t seed = 1;
  TextSettings text;
  MemorySettings memory;
  Index batch = 8, epochs = 0, steps = 1000;
  double hours = 0;
  infty::AdamConfig adam;
  std::string schedule = "linear";
  Index warmup = 0;
  double last_rate = 0, clip = 1;
  std::string products = support::products_now();
  Index evaluate_every = 0, evaluation_batch = 8;
};

template <class See>
void each_common_setting(Settings& s, See&& see) {
  see("What to train", "seed", s.seed, "of fresh weights and of dropout");
  each_text_setting(s.text, see);
  const char* const training = "Training";
  see(training, "batch", s.batch, "rows side by side");
  see(training, "hours", s.hours,
      "as many steps as fit into this time, by the speed of the first ones; 0: by --epochs");
  see(training, "epochs", s.epochs, "times that the text is read; 0: by --steps");
  support::each_training_setting(training, s, see);
  support::each_chosen(training, s.adam, {{"epsilon_first", "epsilon-first"}}, see);
  const char* const evaluation = "Evaluation";
  see(evaluation, "evaluate-every", s.evaluate_every,
      "steps between validations, of which the best is kept; 0: the last is");
  see(evaluation, "evaluation-batch", s.evaluation_batch, "rows side by side");
}

/// A small GPT-2 that is made from nothing.
struct Pretraining : Settings {
  std::string encoding;  ///< a folder
  infty::Gpt2Config model{
      .places = 256, .model_dim = 192, .layers = 4, .heads = 6, .attention_dropout = 0};

  Pretraining() {
    batch = 16;
    adam = {.learning_rate = 1e-3, .beta2 = .95, .weight_decay = .01};
    schedule = "cosine";
    warmup = 100;
  }
};

template <class See>
void each_setting(Pretraining& s, See&& see) {
  const char* const model = "The model";
  see(model, "encoding", s.encoding, "folder of vocab.json and merges.txt, or tokenizer.json");
  support::each_chosen(model, s.model,
                       {{"places"},
                        {"model_dim", "width"},
                        {"layers"},
                        {"heads"},
                        {"dropout"},
                        {"attention_dropout", "attention-dropout"}},
                       see);
  each_common_setting(s, see);
}

/// A trained one that is trained on, with a memory or without.
struct Finetuning : Settings {
  std::string model;  ///< a folder
  bool freeze = false;
  double memory_rate = infty::presets::gpt2_wikitext().memory_learning_rate;
  double kl_weight = infty::presets::gpt2_wikitext().kl_weight, compression_weight = 1;
  double dropout = -1;

  Finetuning() {
    const auto paper = infty::presets::gpt2_wikitext();
    batch = paper.batch;
    epochs = static_cast<Index>(paper.epochs);
    adam = paper.adam;
  }
};

template <class See>
void each_setting(Finetuning& s, See&& see) {
  const char* const model = "The model";
  see(model, "model", s.model, "folder of a GPT-2 in Hugging Face's files");
  see(model, "model-dropout", s.dropout, "all three shares; -1: as config.json says");
  const char* const memory = "The memory";
  support::gpt2::each_memory_setting(memory, s.memory, see);
  see(memory, "freeze", s.freeze, "train the memory alone");
  see(memory, "memory-rate", s.memory_rate, "of its parameters, by the same schedule");
  see(memory, "kl-weight", s.kl_weight,
      "of the mean divergence from the prior, summed over blocks");
  see(memory, "compression-weight", s.compression_weight, "of the compressive memory's own loss");
  each_common_setting(s, see);
}

/// Throws infty::ValueError that names the first setting of the text that does not fit.
inline void validate(const TextSettings& s) {
  infty::require(!s.data.empty(), "gpt2", "--data is missing: files or folders to read");
  infty::require(s.valid.empty() == s.test.empty(), "gpt2", "--valid and --test go together");
  infty::require(!s.exact || !s.articles, "gpt2", "--exact and --articles do not go together");
}

/// Throws infty::ValueError where blocks of such segments predict nothing.
inline void validate_blocks(const TextSettings& s, Index segment) {
  infty::require(!s.exact || segment >= 2, "gpt2", "--segment is ", segment,
                 ": --exact predicts all but the first token of a segment, which must have 2");
}

/// Throws infty::ValueError that names the first setting out of its range.
template <class Job>
void validate(const Job& s, const infty::Gpt2Config& model) {
  support::validate_ranges("gpt2", s);
  validate(s.text);
  infty::require(s.hours == 0 || s.epochs == 0, "gpt2",
                 "--hours and --epochs do not go together: each says how many steps there are");
  if constexpr (requires { s.dropout; })
    infty::require(s.dropout == -1 || (s.dropout >= 0 && s.dropout < 1), "gpt2",
                   "--model-dropout is ", s.dropout, ": it must be -1, or lie in [0, 1)");
  support::gpt2::validate("gpt2", s.memory, model);
  validate_blocks(s.text, s.memory.segment);
  infty::require(!s.text.exact || (s.batch == 1 && s.evaluation_batch == 1), "gpt2",
                 "--exact reads block behind block: --batch and --evaluation-batch must be 1");
  support::trainer_config(s).adam.validate();
}

/// Throws infty::ValueError where a folder's memory has learned weights that another one cannot
/// take; infty and sticky have the same.
inline void require_weights_fit(const std::filesystem::path& folder, const std::string& memory) {
  std::error_code ignored;
  if (memory == "none" || !std::filesystem::exists(folder / "memory.safetensors", ignored)) return;
  const MemorySettings there = support::gpt2::read_memory(folder);
  MemorySettings asked;
  asked.memory = memory;
  infty::require(there.memory == "none" ||
                     support::gpt2::is_long_term(there) == support::gpt2::is_long_term(asked),
                 "gpt2", "--memory is ", memory, ": ", folder.string(), " has the weights of ",
                 there.memory, ", which are none of its");
}

}  // namespace gpt2
