// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/model/presets/gpt2.hpp>
#include <infty/nn/sampling.hpp>

#include "../support/dialogue/sequences.hpp"
#include "../support/gpt2/memory.hpp"
#include "../support/products.hpp"
#include "../support/ranges.hpp"
#include "../support/settings.hpp"

namespace dialogue {

/// What is compared [Martins et al. 2022, §4.3, Table 2]: GPT-2 with the document and without, and
/// with each memory.
inline const std::vector<std::string> form_names{"no-document", "gpt2", "compressive", "infty",
                                                 "sticky"};

/// Everything that decides which numbers come out. Defaults are the paper's App. C.3, where it has
/// them.
struct Settings {
  std::string form = "sticky";
  std::uint64_t seed = 1;

  support::gpt2::MemorySettings memory = support::gpt2::dialogue_memory();
  Index window = 0, document_tokens = 512;  ///< of the forms without a memory
  /// Sizes of a model that begins with fresh weights, where no base is given.
  infty::Gpt2Config fresh{.places = 512, .model_dim = 128, .layers = 4, .heads = 4};

  infty::AdamConfig adam = infty::presets::gpt2_cmu_dog().adam;
  double memory_rate = 0, last_rate = 0, clip = 1, dropout = -1;
  support::gpt2::LossWeights weights{.kl = infty::presets::gpt2_cmu_dog().kl_weight};
  Index epochs = static_cast<Index>(infty::presets::gpt2_cmu_dog().epochs);
  Index dialogues = 0, evaluate_every = 0;
  std::string products = support::products_now();

  Index scored = 0, answers = 0, longest = 50;
  infty::Sampling sampling{.top_p = .9};
};

/// Calls see(group, name, field, help, choice...) for what decides how answers are drawn.
template <class See>
void each_answer_setting(Settings& s, See&& see) {
  const char* const answers = "Evaluation";
  see(answers, "scored", s.scored, "dialogues that are scored, of those that there are; 0: all");
  see(answers, "answers", s.answers, "answers that are drawn, evenly spread; 0: to all turns");
  see(answers, "longest", s.longest, "tokens of an answer, at most");
  see(answers, "temperature", s.sampling.temperature, "that scores are divided by; 0: likeliest");
  see(answers, "top-k", s.sampling.top_k, "only so many likeliest tokens are drawn; 0: all");
  see(answers, "top-p", s.sampling.top_p, "only the likeliest that have this share together");
}

/// Calls see(group, name, field, help, choice...) for every setting.
template <class See>
void each_setting(Settings& s, See&& see) {
  const char* const run = "What to train";
  see(run, "form", s.form, "of the model", form_names);
  see(run, "seed", s.seed, "of new weights, dropout, the order of dialogues and answers");

  const char* const model = "The model";
  see(model, "window", s.window, "tokens that a form without a memory reads; 0: all places");
  see(model, "document-tokens", s.document_tokens,
      "first tokens of the document that form gpt2 sees; 0: all");
  support::gpt2::each_memory_setting(
      "The memory", s.memory,
      [&](const char* group, const char* name, auto& field, const char* help, const auto&... some) {
        if (std::string(name) != "memory") see(group, name, field, help, some...);
      });

  const char* const fresh = "Fresh weights, where --base has an encoding alone";
  see(fresh, "places", s.fresh.places, "most tokens that are read together");
  see(fresh, "width", s.fresh.model_dim, "of vectors");
  see(fresh, "layers", s.fresh.layers, "blocks");
  see(fresh, "heads", s.fresh.heads, "of attention");

  const char* const training = "Training";
  see(training, "epochs", s.epochs, "times that every dialogue is read");
  see(training, "dialogues", s.dialogues, "first dialogues that are trained on; 0: all");
  see(training, "evaluate-every", s.evaluate_every,
      "dialogues between validations; 0: every epoch");
  see(training, "rate", s.adam.learning_rate, "learning rate of the first step");
  see(training, "memory-rate", s.memory_rate, "the same of the memory's parameters; 0: --rate");
  see(training, "last-rate", s.last_rate,
      "what --rate falls to, by a line, and --memory-rate by the same share");
  see(training, "clip", s.clip, "greatest global norm of the gradients; 0: any");
  see(training, "epsilon", s.adam.epsilon, "of Adam");
  see(training, "weight-decay", s.adam.weight_decay, "of Adam");
  see(training, "drop", s.dropout, "share in training; -1: as the base's config.json says");
  see(training, "kl-weight", s.weights.kl, "lambda, of the KL divergence of densities");
  see(training, "compression-weight", s.weights.compression, "of the compressive memory's loss");
  support::each_products_setting(training, s.products, see);
  each_answer_setting(s, see);
}

/// Whether the form is without a memory.
inline bool is_plain(const std::string& form) { return form == "gpt2" || form == "no-document"; }

/// What the form sees of documents.
inline Seen seen_by(const Settings& s) {
  return {.document = s.form != "no-document", .most = s.form == "gpt2" ? s.document_tokens : 0};
}

/// The memory of the form, for a model of so many places.
inline support::gpt2::MemorySettings memory_of(const Settings& s, Index places) {
  support::gpt2::MemorySettings memory = s.memory;
  memory.memory = is_plain(s.form) ? "none" : s.form;
  if (is_plain(s.form)) memory.segment = s.window > 0 ? s.window : places;
  if (!support::gpt2::is_long_term(memory)) memory.blocks.clear();
  return memory;
}

/// Throws infty::ValueError that names the first setting that is out of its range, or does not fit
/// a model of so many places.
inline void validate(const Settings& s, Index places) {
  support::validate_ranges("dialogue", s);
  infty::require(std::find(form_names.begin(), form_names.end(), s.form) != form_names.end(),
                 "dialogue", "--form is ", infty::detail::printable(s.form),
                 ": it is none of the forms");
  s.adam.validate();
  s.sampling.validate();
  infty::require(is_plain(s.form) || s.memory_rate == 0 || s.adam.learning_rate > 0, "dialogue",
                 "--rate is 0: the memory's follows it");
  infty::require(s.last_rate <= s.adam.learning_rate, "dialogue", "--last-rate is ", s.last_rate,
                 ": it must lie in [0, --rate = ", s.adam.learning_rate, ']');
  const auto memory = memory_of(s, places);
  infty::require(memory.segment <= places, "dialogue", is_plain(s.form) ? "--window" : "--segment",
                 " is ", memory.segment, ": the model has places for ", places, " tokens");
  infty::require(s.longest + 1 < memory.segment, "dialogue", "--longest is ", s.longest,
                 ": an answer, its mark and a token in front must fit into ", memory.segment);
  infty::require(s.dropout == -1 || (s.dropout >= 0 && s.dropout < 1), "dialogue", "--drop is ",
                 s.dropout, ": it must be -1, or lie in [0, 1)");
}

}  // namespace dialogue
