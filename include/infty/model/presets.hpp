// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/lamemo.hpp>
#include <infty/model/transformer_config.hpp>

/// The experiments of the ∞-former's paper, and of those that it is compared with. Beside a value
/// stands its source. P is the paper [Martins et al. 2022] and V its first version,
/// arXiv:2109.00301v1, where the text of the published one that was read has lost an exponent; J is
/// [Ji et al. 2022]; C, [Rae et al. 2020, §4, 5], is known from summaries only: unverified. S, G,
/// D, X and L are programs, at the commits that docs/settings.md gives: S, G and D the authors'
/// sorting/, finetune_gpt2/ and document_grounded_generation/, X Transformer-XL's scripts, L
/// LaMemo's. Where they disagree, each is named, and the paper's value is taken.
namespace infty::presets {

/// How the learning rate falls to 0 behind the warm-up, or `constant`: that it does not.
enum class Decay { cosine, linear, constant };

/// One experiment: the model and what it is trained with, by Adam without weight decay.
template <class MemoryConfig>
struct ExperimentWith {
  TransformerConfig model;          ///< sizes of the model
  MemoryConfig memory;              ///< constants of its memory
  Index length = 0;                 ///< tokens of a sequence that is read; 0 for running text
  Index segment = 0;                ///< tokens that are read at once
  Index batch = 0;                  ///< sequences that are read side by side
  Index steps = 0;                  ///< of the optimiser; 0 where `epochs` counts
  double epochs = 0;                ///< passes over the training set; 0 where `steps` counts
  double learning_rate = 0;         ///< at its highest
  double memory_learning_rate = 0;  ///< at its highest, of a long-term memory's parameters; 0: none
  Index warmup_steps = 0;           ///< in which the rate rises from 0
  Decay decay = Decay::cosine;      ///< how it falls behind them
  double max_norm = 0;              ///< the global norm that gradients are clipped to
  double kl_weight = 0;  ///< of the sum over layers, a mean over rows, heads and queries; 0: none

  /// What `loss_named(pass, "divergence")`, the sum over all of them, is to be multiplied by:
  /// kl_weight / (batch heads queries).
  /// @throws infty::ValueError unless queries, the tokens of a row of the segment, are >= 1
  double kl_weight_of_sum(Index queries) const {
    require_at_least("Experiment::kl_weight_of_sum", "queries", queries, 1);
    const auto each = static_cast<double>(batch) * static_cast<double>(model.heads);
    return kl_weight / (each * static_cast<double>(queries));
  }
};

/// One with the ∞-former.
using Experiment = ExperimentWith<InftyConfig>;

/// Sorting by frequency [Martins et al. 2022, §4.1, App. C.1]. Sequences of 20 symbols, a
/// separator, and the 20 symbols sorted; the loss is that of the answer, in the last segment, and
/// only there does a gradient flow (S).
/// @param length  4,000, 8,000 or 16,000
/// @throws infty::ValueError for another length
inline Experiment sorting(Index length) {
  require(length == 4000 || length == 8000 || length == 16000, "presets::sorting", "length is ",
          length, ": the paper has 4000, 8000 and 16000");
  Experiment e;
  e.model.vocabulary = 21;             // P §4.1: 20; S: a separator, and a 22nd id that pads
  e.model.model_dim = 300;             // S
  e.model.layers = 3;                  // S, P §4.1
  e.model.heads = 6;                   // S, P §4.1
  e.model.head_dim = 50;               // S
  e.model.feed_forward = 300;          // S
  e.memory.attention.capacity = 1024;  // S, P §4.1
  e.model.pre_norm = false;            // S
  e.model.tie_embedding = false;       // S: an output layer of its own, there without a bias
  e.model.dropout = 0.1;               // S
  LongTermConfig& memory = *e.memory.memory;
  memory.basis = 1024;           // P §4.1; S: 512
  memory.widths = {.01, .05};    // S, P App. C.1
  memory.samples = 512;          // S
  memory.tau = 0.75;             // S, P App. C.1
  memory.ridge = 1;              // S; G and D: .5
  memory.sigma0 = 0.05;          // S, P App. C.1
  memory.variance_floor = 1e-6;  // S; G and D: 1e-4
  e.length = length;
  e.segment = 1024;  // S, P §4.1
  e.batch = 8;       // S, P App. C.1
  e.steps = 20000;   // S; P App. C.1: 20 epochs of 8,000 sequences, which is the same
  e.learning_rate = length == 16000 ? 2e-4 : 2.5e-4;  // V App. C.1; S, for 8,000: 2e-4
  e.memory_learning_rate = e.learning_rate;           // S
  e.decay = Decay::cosine;                            // S, P App. C.1
  e.max_norm = 0.25;                                  // S
  e.kl_weight = 1e-5;                                 // V App. C.1; S: 1e-6
  return e;
}

namespace detail {

// Words of WikiText-103 and bytes of enwik8 as published configurations have them; text8 has 27
// letters, a to z and the space [Ji et al. 2022, App. C.1].
inline constexpr Index words_of_wikitext103 = 267735, bytes_of_enwik8 = 204, letters_of_text8 = 27;

/// What Transformer-XL's experiments agree on.
template <class MemoryConfig>
ExperimentWith<MemoryConfig> transformer_xl() {
  ExperimentWith<MemoryConfig> e;
  e.model.pre_norm = false;      // X, L
  e.model.tie_embedding = true;  // X, L
  e.model.dropout = 0.1;         // X, L, J App. C.2
  e.learning_rate = 2.5e-4;      // X, L, V App. C.2
  e.decay = Decay::cosine;       // L, S, J App. C.3, P App. D
  e.max_norm = 0.25;             // L, S
  return e;
}

/// Transformer-XL's model of WikiText-103 and its training.
template <class MemoryConfig>
ExperimentWith<MemoryConfig> wikitext103() {
  auto e = transformer_xl<MemoryConfig>();
  e.model.vocabulary = words_of_wikitext103;
  e.model.cutoffs = {20000, 40000, 200000};  // X, L
  e.model.div_value = 1;                     // X, L
  e.model.model_dim = 410;                   // X, L, P App. D
  e.model.layers = 16;                       // X, L, P App. D, J §4.3
  e.model.heads = 10;                        // X, L, P App. D, J §4.3
  e.model.head_dim = 41;                     // X, L, J §4.3
  e.model.feed_forward = 2100;               // X, L, P App. D, J App. C.2
  e.segment = 150;                           // X, L, J §4.3
  e.batch = 60;                              // X
  e.steps = 200000;                          // X
  return e;
}

/// Transformer-XL's small model of enwik8 and text8, and its training.
template <class MemoryConfig>
ExperimentWith<MemoryConfig> characters(Index vocabulary) {
  auto e = transformer_xl<MemoryConfig>();
  e.model.vocabulary = vocabulary;
  e.model.model_dim = 512;      // X, L
  e.model.layers = 12;          // X, L, J §4.3
  e.model.heads = 8;            // X, L, J §4.3
  e.model.head_dim = 64;        // X, L, J §4.3
  e.model.feed_forward = 2048;  // X, L, J App. C.2
  e.segment = 512;              // X, L, J §4.3
  e.batch = 22;                 // X
  e.steps = 400000;             // X
  return e;
}

/// What the Compressive Transformer's experiments agree on.
inline ExperimentWith<CompressiveConfig> compressive() {
  auto e = transformer_xl<CompressiveConfig>();  // what is not known
  e.model.model_dim = 1024;                      // C
  e.batch = 60;                                  // as X
  e.learning_rate = 3e-4;                        // C
  e.max_norm = 0.1;                              // C
  return e;
}

}  // namespace detail

/// Language modelling on WikiText-103 from nothing, beside a Transformer-XL [Martins et al. 2022,
/// App. D]. The authors have not published this program: what the paper does not say is
/// Transformer-XL's, or of the memory their sorting program's, which grew from Transformer-XL's.
inline Experiment wikitext103(bool sticky = true) {
  Experiment e = detail::wikitext103<InftyConfig>();
  e.memory.attention.capacity = 150;  // P App. D
  LongTermConfig& memory = *e.memory.memory;
  memory.basis = 150;                // P App. D
  memory.widths = {.01, .05};        // P App. D
  memory.samples = 512;              // S; P is silent
  memory.tau = 0.5;                  // P App. D
  memory.ridge = 1;                  // S; P is silent
  memory.sigma0 = 0.1;               // P App. D
  memory.variance_floor = 1e-6;      // S; P is silent
  memory.threshold = 900;            // P App. D, "memory threshold"; what it does is G's
  memory.hold_short_writes = false;  // as in the paper: 150 vectors would be held over 512 places
  memory.resampling = sticky ? Resampling::sticky : Resampling::even;
  e.batch = 40;      // P App. D
  e.steps = 250000;  // P App. D
  e.memory_learning_rate = e.learning_rate;
  e.kl_weight = 1e-5;  // V App. C.2
  return e;
}

/// Transformer-XL's model of WikiText-103 [Dai et al. 2019], its smaller one.
inline ExperimentWith<ShortTermConfig> transformer_xl_wikitext103() {
  auto e = detail::wikitext103<ShortTermConfig>();
  e.memory.capacity = 150;  // X
  return e;
}

/// Transformer-XL's model of enwik8 [Dai et al. 2019], its smaller one.
inline ExperimentWith<ShortTermConfig> transformer_xl_enwik8() {
  auto e = detail::characters<ShortTermConfig>(detail::bytes_of_enwik8);
  e.memory.capacity = 512;  // X
  return e;
}

/// LaMemo's model of WikiText-103 [Ji et al. 2022, §4.3, App. C].
inline ExperimentWith<LaMemoConfig> lamemo_wikitext103() {
  auto e = detail::wikitext103<LaMemoConfig>();
  e.memory.capacity = 150;  // L, J §4.3
  e.batch = 64;             // J App. C.3; L: 32 on each of two GPUs
  e.steps = 250000;         // L, J App. C.3
  return e;
}

/// LaMemo's model of enwik8 [Ji et al. 2022, §4.3, App. C].
inline ExperimentWith<LaMemoConfig> lamemo_enwik8() {
  auto e = detail::characters<LaMemoConfig>(detail::bytes_of_enwik8);
  e.memory.capacity = 512;  // L, J §4.3
  e.batch = 40;             // J App. C.3; L: 20 on each of two GPUs
  e.steps = 100000;         // J App. C.3; L: 50,000
  return e;
}

/// LaMemo's model of text8 [Ji et al. 2022], which is that of enwik8.
inline ExperimentWith<LaMemoConfig> lamemo_text8() {
  auto e = lamemo_enwik8();
  e.model.vocabulary = detail::letters_of_text8;
  return e;
}

/// The Compressive Transformer's model of WikiText-103 [Rae et al. 2020]: unverified, and batch and
/// dropout are Transformer-XL's.
inline ExperimentWith<CompressiveConfig> compressive_wikitext103() {
  auto e = detail::compressive();
  e.model.vocabulary = detail::words_of_wikitext103;
  e.model.cutoffs = {20000, 40000, 200000};  // as X
  e.model.div_value = 1;                     // as X
  e.model.layers = 18;                       // C
  e.model.heads = 16;                        // C
  e.model.feed_forward = 4096;               // C
  e.memory.capacity = 512;                   // C; 500 in evaluation
  e.memory.compressed_capacity = 512;        // C; 1,500 in evaluation
  e.memory.rate = 4;                         // C
  e.segment = 512;                           // C
  e.warmup_steps = 16000;                    // C
  e.steps = 500000;                          // C
  return e;
}

/// The Compressive Transformer's model of enwik8 [Rae et al. 2020]: unverified, and batch and
/// dropout are Transformer-XL's of WikiText-103.
inline ExperimentWith<CompressiveConfig> compressive_enwik8() {
  auto e = detail::compressive();
  e.model.vocabulary = detail::bytes_of_enwik8;
  e.model.layers = 24;                  // C
  e.model.heads = 8;                    // C
  e.model.feed_forward = 3072;          // C
  e.memory.capacity = 768;              // C
  e.memory.compressed_capacity = 1152;  // C; 3,072 in evaluation
  e.memory.rate = 3;                    // C
  e.segment = 768;                      // C
  e.warmup_steps = 4000;                // C
  e.steps = 100000;                     // C
  return e;
}

namespace detail {

/// What both programs on GPT-2 (small) agree on.
inline Experiment gpt2(bool sticky) {
  Experiment e;
  e.model.vocabulary = 50257;       // G
  e.model.model_dim = 768;          // G, D
  e.model.layers = 12;              // G, D, P App. C.2, C.3
  e.model.heads = 12;               // G, D, P App. C.2, C.3
  e.model.head_dim = 64;            // G, D
  e.model.feed_forward = 3072;      // G, D: 4 x 768
  e.memory.attention.capacity = 0;  // G, D: a segment sees itself and the long-term memory
  e.memory.attention.stride = 512;  // in training as without; no write a token in generation
  e.model.pre_norm = true;          // G, D
  e.model.tie_embedding = true;     // G, D
  e.model.dropout = 0.1;            // G, D
  LongTermConfig& memory = *e.memory.memory;
  memory.basis = 512;            // G, D, P §4.2, 4.3
  memory.widths = {.005, .01};   // G, D, P App. C.2, C.3
  memory.samples = 512;          // G, D
  memory.tau = 0.5;              // G, D, P App. C.2, C.3
  memory.ridge = 0.5;            // G, D; S: 1
  memory.sigma0 = 0.05;          // G, D, P App. C.2, C.3
  memory.variance_floor = 1e-4;  // G, D; S: 1e-6
  memory.bins = 128;             // G, D
  memory.resampling = sticky ? Resampling::sticky : Resampling::even;
  e.segment = 512;          // G, D, P §4.2, 4.3
  e.batch = 1;              // G, D, P App. C.2, C.3
  e.learning_rate = 5e-5;   // G, D, V App. C.3
  e.decay = Decay::linear;  // G, D, P App. C.3
  e.max_norm = 1;           // G, D
  return e;
}

}  // namespace detail

/// Fine-tuning of GPT-2 (small) on WikiText-103 [Martins et al. 2022, §4.2, App. C.2]: the memory's
/// constants and the training's. A `TransformerLM` lacks GPT-2's absolute positions and GELU.
inline Experiment gpt2_wikitext103(bool sticky = true) {
  Experiment e = detail::gpt2(sticky);
  e.memory.memory->threshold = 2048;  // G, P §4.2
  e.epochs = 1;                       // G, P App. C.2
  e.memory_learning_rate = 2.5e-4;    // V App. C.3, and G's default
  e.kl_weight = 1e-6;                 // G, V App. C.3
  return e;
}

/// Fine-tuning of GPT-2 (small) on the first 2,000 books of PG-19, with the settings of
/// WikiText-103 [Martins et al. 2022, §4.2]; two of the authors' recorded commands name a folder
/// "mem_5000".
inline Experiment gpt2_pg19(bool sticky = true) { return gpt2_wikitext103(sticky); }

/// Document-grounded dialogue with GPT-2 (small) on CMU-DoG [Martins et al. 2022, §4.3, App. C.3].
/// A row is reset when a dialogue begins; gradients of a dialogue's segments are summed before a
/// step (D). The exponents of the rate and of the KL weight are lost in the text that was read.
inline Experiment cmu_dog(bool sticky = true) {
  Experiment e = detail::gpt2(sticky);
  e.model.vocabulary = 50263;                // D: six special tokens
  e.epochs = 5;                              // P App. C.3; D's default: 3
  e.memory_learning_rate = e.learning_rate;  // D: unless its --lr_ltm is given
  e.kl_weight = 1e-5;                        // D's default
  return e;
}

}  // namespace infty::presets
