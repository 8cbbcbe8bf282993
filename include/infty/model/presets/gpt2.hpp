// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/compressive_causal_attention.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/model/gpt2_config.hpp>
#include <infty/model/presets.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/train/adam.hpp>

namespace infty::presets {

/// One experiment on GPT-2 (small) with a memory.
template <class MemoryConfig>
struct Gpt2ExperimentWith : ExperimentWith<MemoryConfig> {
  Gpt2Config gpt2;  ///< sizes of the model, those of `model` and GPT-2's own
  AdamConfig adam;  ///< of the optimiser; parameters of "mixer.memory." have their own rate
};

/// One of the ∞-former, for `Gpt2<WithMemory<CausalAttention<T>, LongTermMemory<T>>>`.
using Gpt2Experiment = Gpt2ExperimentWith<WithMemoryConfig<CausalAttentionConfig, LongTermConfig>>;

/// One of the ∞-former's baseline, for `Gpt2<CompressiveCausalAttention<T>>`.
using Gpt2CompressiveExperiment = Gpt2ExperimentWith<CompressiveCausalConfig>;

namespace detail {

/// What an experiment of `presets.hpp` has of GPT-2's own blocks and the training, whatever memory.
template <class MemoryConfig>
Gpt2ExperimentWith<MemoryConfig> on_gpt2(const Experiment& e) {
  Gpt2ExperimentWith<MemoryConfig> out;
  out.model = e.model;
  out.segment = e.segment;
  out.batch = e.batch;
  out.epochs = e.epochs;
  out.learning_rate = e.learning_rate;
  out.memory_learning_rate = e.memory_learning_rate;
  out.decay = e.decay;
  out.max_norm = e.max_norm;
  out.gpt2.vocabulary = e.model.vocabulary;
  out.gpt2.dropout = out.gpt2.attention_dropout = e.model.dropout;  // G, D: of the embeddings, too
  out.adam.learning_rate = e.learning_rate;
  out.adam.epsilon_first = true;  // G, D: the AdamW of the library that they are made of
  return out;
}

/// The same with the long-term memory. @param normed  what the memory takes in
inline Gpt2Experiment on_gpt2(const Experiment& e, bool normed, bool as_program) {
  auto out = on_gpt2<WithMemoryConfig<CausalAttentionConfig, LongTermConfig>>(e);
  out.memory = {.memory = e.memory.memory, .normed = normed};
  out.kl_weight = e.kl_weight;
  LongTermConfig& memory = *out.memory.memory;
  memory.midpoints = true;  // D: its first segments may be odd; G's are even
  memory.bounded = memory.hold_short_writes = !as_program;
  return out;
}

}  // namespace detail

/// Language modelling on WikiText-103 [Martins et al. 2022, §4.2, App. C.2]; the letters of the
/// sources are those of `presets.hpp`. The memory takes in what comes into a block, not normed (G).
/// @param as_program  with the mean term of the KL of G as released (μ₀ = -1), and without what
/// bounds the memory here
inline Gpt2Experiment gpt2_wikitext(bool sticky = true, bool as_program = false) {
  Gpt2Experiment e = detail::on_gpt2(gpt2_wikitext103(sticky), false, as_program);
  e.memory.memory->mean_term = as_program;
  return e;
}

/// Language modelling on the first 2,000 books of PG-19, with the same settings
/// [Martins et al. 2022, §4.2].
inline Gpt2Experiment gpt2_books(bool sticky = true, bool as_program = false) {
  return gpt2_wikitext(sticky, as_program);
}

/// Document-grounded dialogue on CMU-DoG [Martins et al. 2022, §4.3, App. C.3]. The memory takes in
/// what the norm in front of the attention makes of a block's input, with the norm's gradient (D).
inline Gpt2Experiment gpt2_cmu_dog(bool sticky = true, bool as_program = false) {
  Gpt2Experiment e = detail::on_gpt2(cmu_dog(sticky), true, as_program);
  e.adam.epsilon = 1e-6;  // D
  return e;
}

/// The baseline in language modelling on WikiText-103: GPT-2 with a compressed memory of 512, at a
/// rate of 4, and a positional bias, trained with the reconstruction loss, "compression" in the
/// pass [Martins et al. 2022, §4.2, App. C.2]. The authors' programs have none. Rate, batch and
/// epochs are the experiment's; that the new parameters have the long-term memory's learning rate
/// is ours.
inline Gpt2CompressiveExperiment gpt2_wikitext_compressive() {
  return detail::on_gpt2<CompressiveCausalConfig>(gpt2_wikitext103());
}

/// The same on the first 2,000 books of PG-19 [Martins et al. 2022, §4.2].
inline Gpt2CompressiveExperiment gpt2_books_compressive() { return gpt2_wikitext_compressive(); }

/// The baseline in dialogue on CMU-DoG: the same at a rate of 3
/// [Martins et al. 2022, §4.3, App. C.3].
inline Gpt2CompressiveExperiment gpt2_cmu_dog_compressive() {
  auto e = detail::on_gpt2<CompressiveCausalConfig>(cmu_dog());
  e.memory.rate = 3;      // P App. C.3
  e.adam.epsilon = 1e-6;  // D
  return e;
}

}  // namespace infty::presets
