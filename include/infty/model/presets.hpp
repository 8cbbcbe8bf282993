// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/lamemo.hpp>
#include <infty/model/transformer_config.hpp>

/// The experiments of the ∞-former's paper, and of those that it is compared with, as
/// configurations.
///
/// Where a value comes from is said beside it. P is the paper [Martins et al. 2022, §4 and App. C],
/// whose experiment sections could not be consulted again when this was written: a value marked P
/// is unverified. C, the Compressive Transformer's [Rae et al. 2020, §4, 5], is known from
/// summaries only: unverified, too. S, G, D, X and L are programs, read at the commits that
/// docs/settings.md gives: S the authors' sorting/, G their finetune_gpt2/, D their
/// document_grounded_generation/, X Transformer-XL's run_wt103_base.sh and run_enwik8_base.sh, L
/// LaMemo's three run_*_base_ddp.sh. Where they disagree, each is named.
namespace infty::presets {

/// How the learning rate falls to 0 behind the warm-up.
enum class Decay { cosine, linear };

/// One experiment: the model and what it is trained with. The optimiser is Adam, without weight
/// decay in all of them.
template <class MemoryConfig>
struct ExperimentWith {
  TransformerConfig model;
  MemoryConfig memory;
  Index length = 0;                 ///< tokens of a sequence that is read; 0 for running text
  Index segment = 0;                ///< tokens that are read at once
  Index batch = 0;                  ///< sequences that are read side by side
  Index steps = 0;                  ///< of the optimiser; 0 where `epochs` counts
  double epochs = 0;                ///< passes over the training set; 0 where `steps` counts
  double learning_rate = 0;         ///< at its highest
  double memory_learning_rate = 0;  ///< the same for a long-term memory's parameters; 0: none
  Index warmup_steps = 0;
  Decay decay = Decay::cosine;
  double max_norm = 0;  ///< the global norm that gradients are clipped to
  double kl_weight =
      0;  ///< of the mean over rows, heads and queries of the sum over layers; 0: none

  /// What `TransformerLM::kl_regulariser`, the sum over all of them, is to be multiplied by:
  /// kl_weight / (batch heads queries).
  /// @throws infty::ValueError unless queries, the tokens of a row of the segment, are >= 1
  double kl_weight_of_sum(Index queries) const {
    require_at_least("Experiment::kl_weight_of_sum", "queries", queries, 1);
    return kl_weight / static_cast<double>(batch * model.heads * queries);
  }
};

/// One with the ∞-former.
using Experiment = ExperimentWith<InftyConfig>;

/// Sorting by frequency (§4.1). Sequences of 20 symbols, a separator, and the 20 symbols sorted;
/// the loss is that of the answer, in the last segment, and only there does a gradient flow (S).
/// @param length  4,000, 8,000 or 16,000
/// @throws infty::ValueError for another length
inline Experiment sorting(Index length) {
  require(length == 4000 || length == 8000 || length == 16000, "presets::sorting", "length is ",
          length, ": the paper has 4000, 8000 and 16000");
  Experiment e;
  e.model.vocabulary = 21;              // S: and a 22nd id, the padding of targets
  e.model.model_dim = 300;              // S
  e.model.layers = 3;                   // S, P
  e.model.heads = 6;                    // S, P
  e.model.head_dim = 50;                // S
  e.model.feed_forward = 300;           // S
  e.memory.attention.capacity = 1024;  // S, P
  e.model.pre_norm = false;             // S
  e.model.tie_embedding = false;        // S: an output layer of its own, there without a bias
  e.model.dropout = 0.1;                // S
  LongTermConfig& memory = *e.memory.memory;
  memory.basis = 1024;           // P; S: 512
  memory.widths = {.01, .05};    // S, P
  memory.samples = 512;          // S
  memory.tau = 0.75;             // S, P; G and D: .5
  memory.ridge = 1;              // S; G and D: .5
  memory.sigma0 = 0.05;          // S, P
  memory.variance_floor = 1e-6;  // S; G and D: 1e-4
  e.length = length;
  e.segment = 1024;  // S, P
  e.batch = 8;       // S, P
  e.steps = 20000;   // S; P: 20 epochs of 8,000 sequences, which is the same
  e.learning_rate = length == 16000 ? 2e-4 : 2.5e-4;  // P; S, for 8,000: 2e-4
  e.memory_learning_rate = e.learning_rate;           // S
  e.decay = Decay::cosine;                            // S, P
  e.max_norm = 0.25;                                  // S
  e.kl_weight = 1e-6;                                 // S, P
  return e;
}

namespace detail {

// How many words WikiText-103 has, and bytes occur in enwik8, as published configurations have it;
// text8 has a to z and the space.
inline constexpr Index words_of_wikitext103 = 267735, bytes_of_enwik8 = 204, letters_of_text8 = 27;

/// What Transformer-XL's experiments agree on.
template <class MemoryConfig>
ExperimentWith<MemoryConfig> transformer_xl() {
  ExperimentWith<MemoryConfig> e;
  e.model.pre_norm = false;      // X, L
  e.model.tie_embedding = true;  // X, L
  e.model.dropout = 0.1;         // X, L
  e.learning_rate = 2.5e-4;      // X, L
  e.decay = Decay::cosine;       // L, S
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
  e.model.model_dim = 410;                   // X, L
  e.model.layers = 16;                       // X, L
  e.model.heads = 10;                        // X, L
  e.model.head_dim = 41;                     // X, L
  e.model.feed_forward = 2100;               // X, L
  e.segment = 150;                           // X, L
  e.batch = 60;                              // X; L: 32
  e.steps = 200000;                          // X; L: 250,000
  return e;
}

/// Transformer-XL's small model of enwik8 and text8, and its training.
template <class MemoryConfig>
ExperimentWith<MemoryConfig> characters(Index vocabulary) {
  auto e = transformer_xl<MemoryConfig>();
  e.model.vocabulary = vocabulary;
  e.model.model_dim = 512;      // X, L
  e.model.layers = 12;          // X, L
  e.model.heads = 8;            // X, L
  e.model.head_dim = 64;        // X, L
  e.model.feed_forward = 2048;  // X, L
  e.segment = 512;              // X, L
  e.batch = 22;                 // X; L: 20
  e.steps = 400000;             // X; L: 50,000
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

/// Language modelling on WikiText-103 from nothing, beside a Transformer-XL. The authors have not
/// published this program: sizes and training are Transformer-XL's, the memory's constants those
/// of their sorting program, which grew from Transformer-XL's, unless a line says otherwise.
inline Experiment wikitext103(bool sticky = true) {
  Experiment e = detail::wikitext103<InftyConfig>();
  e.memory.attention.capacity = 150;  // X
  LongTermConfig& memory = *e.memory.memory;
  memory.basis = 150;            // P
  memory.widths = {.01, .05};    // P
  memory.samples = 512;          // S
  memory.tau = 0.5;              // P; S: .75
  memory.ridge = 1;              // S
  memory.sigma0 = 0.05;          // P
  memory.variance_floor = 1e-6;  // S
  // As in the paper: 150 vectors are fewer than the 512 places that they would be held over.
  memory.hold_short_writes = false;
  memory.resampling = sticky ? Resampling::sticky : Resampling::even;
  e.memory_learning_rate = e.learning_rate;
  e.kl_weight = 1e-5;  // P; S: 1e-6
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

/// LaMemo's model of WikiText-103 [Ji et al. 2022].
inline ExperimentWith<LaMemoConfig> lamemo_wikitext103() {
  auto e = detail::wikitext103<LaMemoConfig>();
  e.memory.capacity = 150;  // L
  e.batch = 32;             // L
  e.steps = 250000;         // L
  return e;
}

/// LaMemo's model of enwik8 [Ji et al. 2022].
inline ExperimentWith<LaMemoConfig> lamemo_enwik8() {
  auto e = detail::characters<LaMemoConfig>(detail::bytes_of_enwik8);
  e.memory.capacity = 512;  // L
  e.batch = 20;             // L
  e.steps = 50000;          // L
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
  e.model.vocabulary = 50257;        // G
  e.model.model_dim = 768;           // G, D
  e.model.layers = 12;               // G, D
  e.model.heads = 12;                // G, D
  e.model.head_dim = 64;             // G, D
  e.model.feed_forward = 3072;       // G, D: 4 x 768
  e.memory.attention.capacity = 0;  // G, D: a segment sees itself and the long-term memory
  e.memory.attention.stride = 512;  // in training as without; no write a token in generation
  e.model.pre_norm = true;           // G, D
  e.model.tie_embedding = true;      // G, D
  e.model.dropout = 0.1;             // G, D
  LongTermConfig& memory = *e.memory.memory;
  memory.basis = 512;            // G, D
  memory.widths = {.005, .01};   // G, D
  memory.samples = 512;          // G, D
  memory.tau = 0.5;              // G, D; S: .75
  memory.ridge = 0.5;            // G, D; S: 1
  memory.sigma0 = 0.05;          // G, D
  memory.variance_floor = 1e-4;  // G, D; S: 1e-6
  memory.bins = 128;             // G, D
  memory.resampling = sticky ? Resampling::sticky : Resampling::even;
  e.segment = 512;          // G, D
  e.batch = 1;              // G, D
  e.learning_rate = 5e-5;   // G, D
  e.decay = Decay::linear;  // G, D
  e.max_norm = 1;           // G, D
  return e;
}

}  // namespace detail

/// Fine-tuning of GPT-2 (small) on WikiText-103. What a `TransformerLM` cannot take over from
/// GPT-2: learned absolute positions and GELU. The preset is the memory's and the training's.
inline Experiment gpt2_wikitext103(bool sticky = true) {
  Experiment e = detail::gpt2(sticky);
  e.memory.memory->threshold = 2048;  // G
  e.epochs = 1;                          // G
  e.memory_learning_rate = 2.5e-4;       // G: the default of its training arguments
  e.kl_weight = 1e-6;                    // G; D: 1e-5
  return e;
}

/// Fine-tuning of GPT-2 (small) on PG-19: the settings of WikiText-103. Among the authors' recorded
/// commands are two on PG-19 that write to a folder named "mem_5000": a threshold of 5,000 may be
/// meant, which is unverified.
inline Experiment gpt2_pg19(bool sticky = true) { return gpt2_wikitext103(sticky); }

/// Document-grounded dialogue with GPT-2 (small) on CMU-DoG. A row is reset when a dialogue begins;
/// gradients of a dialogue's segments are summed before a step (D).
inline Experiment cmu_dog(bool sticky = true) {
  Experiment e = detail::gpt2(sticky);
  e.model.vocabulary = 50263;                // D: six special tokens
  e.epochs = 3;                              // D
  e.memory_learning_rate = e.learning_rate;  // D: unless its --lr_ltm is given
  e.kl_weight = 1e-5;                        // D: its default; G: 1e-6
  return e;
}

}  // namespace infty::presets
