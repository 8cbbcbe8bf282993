// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/memory/memory_pair.hpp>
#include <infty/model/transformer_config.hpp>

/// The experiments of the ∞-former's paper as configurations.
///
/// Where a value comes from is said beside it. P is the paper [Martins et al. 2022, §4 and App. C],
/// whose experiment sections could not be consulted again when this was written: a value marked P
/// is unverified. S, G, D and X are programs, read at the commits that docs/settings.md gives:
/// S the authors' sorting/, G their finetune_gpt2/, D their document_grounded_generation/, X
/// Transformer-XL's run_wt103_base.sh. Where they disagree, each is named.
namespace infty::presets {

/// How the learning rate falls to 0 behind the warm-up.
enum class Decay { cosine, linear };

/// One experiment: the model and what it is trained with. The optimiser is Adam, without weight
/// decay in all of them.
struct Experiment {
  TransformerConfig model;
  InftyConfig memory;
  Index length = 0;                 ///< tokens of a sequence that is read; 0 for running text
  Index segment = 0;                ///< tokens that are read at once
  Index batch = 0;                  ///< sequences that are read side by side
  Index steps = 0;                  ///< of the optimiser; 0 where `epochs` counts
  double epochs = 0;                ///< passes over the training set; 0 where `steps` counts
  double learning_rate = 0;         ///< at its highest
  double memory_learning_rate = 0;  ///< the same for the parameters of the long-term memory
  Index warmup_steps = 0;
  Decay decay = Decay::cosine;
  double max_norm = 0;   ///< the global norm that gradients are clipped to
  double kl_weight = 0;  ///< of the mean over rows, heads and queries of the sum over layers

  /// What `TransformerLM::kl_regulariser`, the sum over all of them, is to be multiplied by:
  /// kl_weight / (batch heads queries).
  /// @throws infty::ValueError unless queries, the tokens of a row of the segment, are >= 1
  double kl_weight_of_sum(Index queries) const {
    require_at_least("Experiment::kl_weight_of_sum", "queries", queries, 1);
    return kl_weight / static_cast<double>(batch * model.heads * queries);
  }
};

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
  e.memory.short_term.capacity = 1024;  // S, P
  e.model.pre_norm = false;             // S
  e.model.tie_embedding = false;        // S: an output layer of its own, there without a bias
  e.model.dropout = 0.1;                // S
  LongTermConfig& memory = *e.memory.long_term;
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

/// Language modelling on WikiText-103 from nothing, beside a Transformer-XL. The authors have not
/// published this program: sizes and training are Transformer-XL's, the memory's constants those
/// of their sorting program, which grew from Transformer-XL's, unless a line says otherwise.
inline Experiment wikitext103(bool sticky = true) {
  Experiment e;
  e.model.vocabulary = 267735;               // of Transformer-XL's word-level WikiText-103
  e.model.cutoffs = {20000, 40000, 200000};  // X
  e.model.div_value = 1;                     // X
  e.model.model_dim = 410;                   // X
  e.model.layers = 16;                       // X
  e.model.heads = 10;                        // X
  e.model.head_dim = 41;                     // X
  e.model.feed_forward = 2100;               // X
  e.memory.short_term.capacity = 150;        // X
  e.model.pre_norm = false;                  // X
  e.model.tie_embedding = true;              // X
  e.model.dropout = 0.1;                     // X
  LongTermConfig& memory = *e.memory.long_term;
  memory.basis = 150;            // P
  memory.widths = {.01, .05};    // P
  memory.samples = 512;          // S
  memory.tau = 0.5;              // P; S: .75
  memory.ridge = 1;              // S
  memory.sigma0 = 0.05;          // P
  memory.variance_floor = 1e-6;  // S
  memory.resampling = sticky ? Resampling::sticky : Resampling::even;
  e.segment = 150;           // X
  e.batch = 60;              // X
  e.steps = 200000;          // X
  e.learning_rate = 2.5e-4;  // X
  e.memory_learning_rate = e.learning_rate;
  e.decay = Decay::cosine;  // S
  e.max_norm = 0.25;        // S
  e.kl_weight = 1e-5;       // P; S: 1e-6
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
  e.memory.short_term.capacity = 0;  // G, D: a segment sees itself and the long-term memory
  e.memory.short_term.stride = 512;  // in training as without; no write a token in generation
  e.model.pre_norm = true;           // G, D
  e.model.tie_embedding = true;      // G, D
  e.model.dropout = 0.1;             // G, D
  LongTermConfig& memory = *e.memory.long_term;
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
  e.memory.long_term->threshold = 2048;  // G
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
