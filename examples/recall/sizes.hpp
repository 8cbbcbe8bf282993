// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../support/model.hpp"
#include "../support/model_need.hpp"
#include "settings.hpp"
#include "task.hpp"

// How large each memory is: what makes their states of equal bytes.

namespace recall {

/// Whether a word stands for the control: attention, with nothing to remember, that has the whole
/// sequence before its eyes. All others read it in segments.
inline bool reads_in_one(const std::string& memory) { return memory == "attention"; }

/// The memory of the model that a word stands for.
inline std::string memory_of(const std::string& word) { return reads_in_one(word) ? "none" : word; }

/// What is made of a memory's model before it is fitted to the bytes of `vectors` vectors.
inline support::ModelConfig config_of(const Settings& s, Index vocabulary,
                                      const std::string& memory, std::uint64_t seed) {
  support::ModelConfig config{.memory = memory_of(memory),
                              .feed = s.zoology ? "none" : "plain",
                              .seed = seed,
                              .transformer = s.model,
                              .memory_length = s.vectors,
                              .compression_rate = s.compression_rate,
                              .segment = 1,
                              .long_term = s.long_term};
  config.transformer.vocabulary = vocabulary;
  return config;
}

/// A model's state for one row, when its memories are full.
inline std::size_t full_bytes(const Settings& s, const support::ModelConfig& config) {
  const auto model = support::make_model(config);
  auto state = model->make_state(1);
  // What is compressed takes several vectors; a memory behind another waits for a segment.
  const Index segments = 2 + (config.memory_length * config.compression_rate) / s.segment;
  const std::vector<Index> tokens(static_cast<std::size_t>(segments * s.segment), 0);
  model->observe(state, 1, tokens, s.segment);
  return model->bytes_of(state);
}

/// A model of a memory; with as long a one as fits into the bytes of `vectors` vectors a layer.
inline support::ModelConfig fitted(const Settings& s, const Task& task, const std::string& memory,
                                   std::uint64_t seed) {
  support::ModelConfig config = config_of(s, task.vocabulary, "xl", seed);
  const std::size_t allowed = full_bytes(s, config);
  config.memory = memory_of(memory);
  if (config.memory == "xl" || config.memory == "none") return config;
  const auto widths = static_cast<Index>(s.long_term.widths.size());
  const auto fits = [&](Index length) {
    config.memory_length = length;
    // Of basis functions there are as many for each width.
    const auto part = static_cast<Index>(s.share * static_cast<double>(length));
    config.compressed = std::max<Index>(1, part / widths) * widths;
    return full_bytes(s, config) <= allowed;
  };
  Index low = 2 * widths, high = s.vectors * s.model.layers + 1;
  infty::require(fits(low), "recall", "--vectors is ", s.vectors, ": ", memory,
                 " needs more than their ", allowed, " bytes");
  while (high - low > 1) {
    const Index middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  fits(low);
  return config;
}

/// Throws infty::ValueError that names the option if a memory's model and what it reads and answers
/// in the tasks need more memory than there is; makes nothing of their sizes.
inline void check_memory(const Settings& settings, const std::string& memory) {
  const auto need = [&](const Settings& s) {
    const auto number = [](Index n) { return static_cast<double>(n); };
    const double rows = number(s.batch);
    // Of a task with so many different tokens, and sequences and answers so long.
    const auto bytes = [&](Index vocabulary, Index length, Index answer) {
      auto config = config_of(s, vocabulary, memory, 0);
      config.compressed = static_cast<Index>(s.share * number(s.vectors));
      const support::ModelNeed model(config);
      const double filled = number(s.vectors) * number(s.compression_rate) + 2 * number(s.segment);
      return model.model() + model.state(rows) +
             (reads_in_one(memory)
                  ? model.segment(rows, number(length + answer), true)
                  : std::max(model.segment(rows, number(std::min(s.segment, length)), false),
                             model.segment(rows, number(answer), true))) +
             2 * sizeof(Index) * (filled + rows * number(length + answer) + number(vocabulary));
    };
    double most = 0;
    for (const std::string& task : s.tasks) {
      if (task == "copy")
        most = std::max(most, bytes(s.symbols + 2, s.items + s.copy_gap, s.items));
      else if (task == "recall")
        most = std::max(most, bytes(s.values + s.keys + 1, 2 * s.pairs + s.recall_gap, s.pairs));
      else if (task == "sorting")
        for (const Index length : s.lengths)
          most = std::max(most, bytes(s.symbols + 1, length, s.symbols));
    }
    return most;
  };
  support::require_memory("recall", settings, need);
}

}  // namespace recall
