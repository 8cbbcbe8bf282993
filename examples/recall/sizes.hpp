// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <infty/core/pool.hpp>

#include "../support/feed_width.hpp"
#include "../support/model.hpp"
#include "../support/model_need.hpp"
#include "mqar.hpp"
#include "settings.hpp"
#include "task.hpp"
#include "tries.hpp"

// How large each memory is: what makes their states of equal bytes.

namespace recall {

/// Whether a word stands for the control.
inline bool reads_in_one(const std::string& word) { return word == control; }

/// Whether what it remembers can be larger or smaller.
inline bool has_sizes(const std::string& word) { return word != "none" && !reads_in_one(word); }

/// Vectors a layer of a Transformer-XL whose vectors have so many bytes for a row.
inline Index vectors_of(const Settings& s, Index bytes) {
  const double one =
      sizeof(float) * static_cast<double>(s.model.model_dim) * static_cast<double>(s.model.layers);
  return static_cast<Index>(static_cast<double>(bytes) / one);
}

/// The model that a word stands for, with what it remembers about as large as `length` vectors a
/// layer. What is no vectors is counted as so many: a head's matrix by its width, the networks of
/// Titans and associative keys likewise. Memory tokens are an eighth, and a segment at most.
inline support::ModelConfig config_of(const Settings& s, const std::string& word, Index length) {
  support::ModelConfig c{.transformer = s.model,
                         .memory_length = length,
                         .compression_rate = s.compression_rate,
                         .segment = 1,
                         .long_term = s.long_term,
                         .contraction = s.contraction};
  if (is_swept(word)) {
    support::choose_model(c, word.substr(0, word.rfind('-')));
    c.contraction.name = "fixed";
  } else {
    support::choose_model(c, reads_in_one(word) ? "none" : word);
  }
  if (s.zoology && c.feed == "plain") c.feed = "none";
  c.transformer.vocabulary = 8;  // nothing of a state depends on it
  const auto part = static_cast<Index>(s.share * static_cast<double>(length));
  const Index rest = std::max<Index>(1, part);
  c.compressed = rest;
  if (support::is_infty(word)) {  // of basis functions each part has as many for each width
    const auto widths = static_cast<Index>(s.long_term.widths.size());
    const Index beside = 1 + support::waiting_of(c.memory, c.contraction);  // at least
    c.compressed = std::max(support::parts_of(c.memory, c.contraction),
                            std::min(part, length - beside) / widths) *
                   widths;
  }
  const auto matrix = [&](Index vectors) {  // its width: even, for what turns pairs of numbers
    const auto numbers = static_cast<double>(vectors * s.model.model_dim / s.model.heads);
    return std::max<Index>(2, static_cast<Index>(std::sqrt(numbers)) / 2 * 2);
  };
  if (support::is_infini(word)) {
    c.memory_length = length - rest;
    c.transformer.head_dim = matrix(rest);
  }
  if (word == "titans" || word == "titans-front") c.memory_width = std::max<Index>(1, rest / 4);
  if (word == "titans-layer") c.memory_width = std::max<Index>(1, length / 4);
  if (c.mixer != "attention" && c.mixer != "memsizer" && c.mixer != "titans-layer")
    c.transformer.head_dim = matrix(length);
  if (c.tokens != "none") c.token_count = std::clamp<Index>(length / 8, 1, s.segment);
  if (word == "titans-front" || word == "associative") c.memory_length = length - rest;
  if (word == "associative") c.memory_width = std::max<Index>(1, rest / 8);
  return c;
}

/// The least length that `config_of` makes a model of.
inline Index least_length(const Settings& s, const std::string& word) {
  const auto c = config_of(s, word, 2);
  const std::string& memory = c.memory;
  if (support::is_infty(memory))  // a function of each width for each part, and a vector
    return std::ssize(s.long_term.widths) * support::parts_of(memory, c.contraction) +
           support::waiting_of(memory, c.contraction) + 1;
  const bool two_parts = memory == "compressive" || memory == "memformer" ||
                         support::is_infini(memory) || memory == "titans" ||
                         word == "titans-front" || word == "associative";
  return two_parts ? 2 : 1;
}

/// Reads until the memories of the state are full.
inline support::Model::State full_state(const Settings& s, const support::ModelConfig& config,
                                        const support::Model& model, Index rows) {
  auto state = model.make_state(rows);
  // What is compressed takes several vectors; a memory behind another waits for a segment.
  const Index rate = config.memory == "compressive" ? config.compression_rate : 1;
  const Index vectors = config.memory == "none" ? 0 : config.memory_length * rate;
  const Index segments = 2 + vectors / s.segment;
  const std::vector<Index> tokens(static_cast<std::size_t>(rows * segments * s.segment), 0);
  model.observe(state, rows, tokens, s.segment);
  return state;
}

/// A model's state for one row, when its memories are full.
inline std::size_t full_bytes(const Settings& s, const support::ModelConfig& config) {
  const auto model = support::make_model(config);
  return model->bytes_of(full_state(s, config, *model, 1));
}

/// What a row of a full state holds of memory, with what it keeps only to be quick, in blocks that
/// are up to an eighth larger than asked for; 0 where nobody counts (INFTY_NO_POOL).
inline std::size_t held_bytes(const Settings& s, const support::ModelConfig& config) {
  const auto model = support::make_model(config);
  const auto used = [] { return infty::HostPool::instance().statistics().bytes_in_use; };
  const auto taken = [&](Index rows) {
    infty::TextBatch asking;
    asking.batch = rows;
    asking.length = s.segment;
    asking.inputs.assign(static_cast<std::size_t>(rows * s.segment), 0);
    asking.targets = asking.inputs;
    const std::size_t before = used();
    auto state = full_state(s, config, *model, rows);
    model->likeliest(state, asking);  // only where all layers answer do all keep something
    return static_cast<Index>(used() - before);
  };
  constexpr Index rows = 8;
  taken(rows + 1);  // what stays with the model
  return static_cast<std::size_t>(std::max<Index>(0, taken(rows + 1) - taken(1)) / rows);
}

/// A memory that is as large as it may be.
struct Size {
  support::ModelConfig config;  ///< but for the vocabulary and the seed
  std::size_t bytes = 0;        ///< of a row's full state
  std::size_t held = 0;         ///< the same with what is kept to be quick; 0: unknown
};

/// The greatest number from `least` on that fits, which larger ones do not; none if `least` does
/// not.
template <class Fits>
std::optional<Index> greatest(Index least, Fits&& fits) {
  if (!fits(least)) return std::nullopt;
  Index low = least, high = least + 1;
  for (; fits(high); high = 2 * high) low = high;
  while (high - low > 1) {
    const Index middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

/// Whether a word stands for a lookup: a table that is learned and not written to.
inline bool is_lookup(const std::string& word) {
  const auto& names = support::feed_names;
  return std::find(names.begin() + 1, names.end(), word) != names.end();
}

/// The model of a word, with as long a memory as fits into the bytes of a
/// Transformer-XL's state that has so many of vectors; none if the least memory needs more. Where
/// the settings say how many parameters there are to be, its feed-forward layers, if it has any,
/// are as wide as that makes them; with more than so many in the rest of the model they stay as
/// they are.
/// @param sub_keys  of a lookup
inline std::optional<Size> fitted(const Settings& s, const std::string& word, Index bytes,
                                  Index sub_keys = 1) {
  const Index vectors = vectors_of(s, bytes);
  if (vectors < 1) return std::nullopt;
  const std::size_t allowed = full_bytes(s, config_of(s, "xl", vectors));
  const auto config = [&](Index length) {
    auto made = config_of(s, word, length);
    made.sub_keys = sub_keys;
    return made;
  };
  std::optional<Index> length = vectors;
  if (has_sizes(word))
    length = greatest(least_length(s, word),
                      [&](Index n) { return full_bytes(s, config(n)) <= allowed; });
  if (!length) return std::nullopt;
  auto made = config(*length);
  if (s.parameters > 0)  // which leave its state as it is
    support::fit_feed_width(made.transformer.feed_forward, s.parameters,
                            [&] { return support::make_model(made)->parameters(); });
  return Size{made, full_bytes(s, made), held_bytes(s, made)};
}

/// The most sub-keys with which a lookup's model has no more parameters than the ∞-former's of the
/// same bytes; 1 if it has more with any.
inline Index sub_keys_of(const Settings& s, const std::string& word, Index bytes) {
  const auto parameters = [](const support::ModelConfig& config) {
    return support::make_model(config)->parameters();
  };
  const Index vectors = vectors_of(s, bytes);
  if (vectors < 1) return 1;
  const auto infty = fitted(s, "infty", bytes);
  const Index most = parameters(infty ? infty->config : config_of(s, "xl", vectors));
  auto config = config_of(s, word, vectors);
  return greatest(1,
                  [&](Index n) {
                    config.sub_keys = n;
                    return parameters(config) <= most;
                  })
      .value_or(1);
}

/// Throws infty::ValueError that names the option if a memory's model and what it reads and answers
/// in the tasks need more memory than there is; makes nothing of their sizes.
inline void check_memory(const Settings& settings, const std::string& memory) {
  const auto need = [&](const Settings& s) {
    const auto number = [](Index n) { return static_cast<double>(n); };
    const Index most_bytes =
        std::max(s.bytes, *std::max_element(s.curve_bytes.begin(), s.curve_bytes.end()));
    const Index vectors = std::max<Index>(2, vectors_of(s, most_bytes));
    // Of a task with so many different tokens, sequences and answers so long, and so many a step.
    Settings of = s;
    const auto bytes = [&](Index vocabulary, Index length, Index answer, Index batch) {
      const double rows = number(batch);
      auto config = config_of(of, memory, vectors);
      config.transformer.vocabulary = vocabulary;
      const support::ModelNeed model(config);
      const double filled = number(vectors) * number(s.compression_rate) + 2 * number(s.segment);
      return std::max(model.model(), 4 * sizeof(float) * number(s.parameters)) + model.state(rows) +
             (reads_in_one(memory)
                  ? model.segment(rows, number(length + answer), true)
                  : std::max(model.segment(rows, number(std::min(s.segment, length)), false),
                             model.segment(rows, number(answer), true))) +
             2 * sizeof(Index) * (filled + rows * number(length + answer) + number(vocabulary));
    };
    double most = 0;
    for (const std::string& task : s.tasks) {
      of.model.heads = heads_of(s, task);
      if (task == "copy")
        most = std::max(most, bytes(s.symbols + 2, s.items + s.copy_gap, s.items, s.batch));
      else if (task == "recall")
        most = std::max(most,
                        bytes(s.values + s.keys + 1, 2 * s.pairs + s.recall_gap, s.pairs, s.batch));
      else if (task == "sorting")
        for (const auto* const lengths : {&s.lengths, &s.test_lengths})
          for (const Index length : *lengths)
            most = std::max(most, bytes(s.symbols + 1, length, s.symbols, s.batch));
      else if (task == "needle")
        most = std::max(most, bytes(s.needle_keys + s.needle_values + s.needle_fillers,
                                    2 * (s.needle_decoys + 1), s.needle_trained + 1, s.batch));
      else if (task == "mqar-mix")
        most = std::max(most, bytes(mqar_mix_vocabulary(s), mqar_mix_longest, mqar_mix_longest,
                                    mqar_batch(s, true, mqar_mix_longest)));
      else
        for (const Index length : s.mqar_lengths)
          most = std::max(most,
                          bytes(s.mqar_vocabulary, length, length, mqar_batch(s, false, length)));
    }
    return most;
  };
  support::require_memory("recall", settings, need);
}

}  // namespace recall
