// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/random.hpp>
#include <infty/data/draws.hpp>

namespace infty {

/// The sizes of associative recall.
struct AssociativeRecallConfig {
  Index keys = 16;   ///< different ones, at least 1
  Index values = 8;  ///< different ones, at least 1
  Index pairs = 8;   ///< in a sequence, in [1, keys]
  Index gap = 100;   ///< blanks behind them, at least 0
};

/// Sequences, questions and their answers, row by row.
struct AssociativeRecallBatch {
  std::vector<std::int64_t> tokens;     ///< (batch, 2 pairs + gap)
  std::vector<std::int64_t> questions;  ///< (batch, pairs), the keys in another order
  std::vector<std::int64_t> answer;     ///< (batch, pairs), the value that followed each of them
};

/// Associative recall [Graves et al. 2014; Ba et al. 2016]: pairs of a key and a value, then
/// blanks, then each key once more, for its value. Keys of a sequence differ; values are drawn
/// evenly and independently. Whoever remembers nothing says one of `values` right.
class AssociativeRecallTask {
 public:
  /// Makes a task of these sizes.
  /// @throws infty::ValueError for sizes out of their range
  explicit AssociativeRecallTask(const AssociativeRecallConfig& config) : config_(config) {
    require(config.values >= 1 && config.pairs >= 1 && config.gap >= 0, "AssociativeRecallTask",
            "values is ", config.values, ", pairs ", config.pairs, ", gap ", config.gap,
            ": they must be at least 1, 1 and 0");
    require(config.keys >= config.pairs, "AssociativeRecallTask", "keys is ", config.keys,
            ": it must be at least pairs = ", config.pairs);
    require_sizes("AssociativeRecallTask", {{"keys", config.keys}});
    require_sizes("AssociativeRecallTask", {{"values", config.values}});
    require_sizes("AssociativeRecallTask", {{"gap", config.gap}});
  }

  /// The constants as given.
  const AssociativeRecallConfig& config() const { return config_; }

  /// Tokens in a sequence.
  Index length() const { return 2 * config_.pairs + config_.gap; }
  /// The first key; values are the tokens below.
  std::int64_t first_key() const { return config_.values; }
  /// The token of the gap, above the keys.
  std::int64_t blank() const { return config_.values + config_.keys; }
  /// Number of different tokens.
  Index vocabulary() const { return config_.values + config_.keys + 1; }

  /// Draws `batch` sequences and takes `batch` draws from `random`: row b depends on draw b alone.
  /// @throws infty::ValueError if batch < 0 or there would be more than `largest_size` tokens
  AssociativeRecallBatch sample(Index batch, Random& random) const {
    require_at_least("AssociativeRecallTask::sample", "batch", batch, 0);
    require_sizes("AssociativeRecallTask::sample", {{"batch", batch}, {"2 pairs + gap", length()}});
    AssociativeRecallBatch out;
    out.tokens.reserve(static_cast<std::size_t>(batch * length()));
    for (Index row = 0; row < batch; ++row) {
      Random draws = detail::random_of_row(random);
      sample_row(draws, out);
    }
    return out;
  }

 private:
  void sample_row(Random& random, AssociativeRecallBatch& out) const {
    const auto keys = detail::choose(config_.pairs, config_.keys, random);
    std::vector<std::int64_t> values;
    for (const std::int64_t key : keys) {
      values.push_back(random.below(config_.values));
      out.tokens.insert(out.tokens.end(), {first_key() + key, values.back()});
    }
    out.tokens.insert(out.tokens.end(), static_cast<std::size_t>(config_.gap), blank());
    for (const std::int64_t pair : detail::choose(config_.pairs, config_.pairs, random)) {
      out.questions.push_back(first_key() + keys[static_cast<std::size_t>(pair)]);
      out.answer.push_back(values[static_cast<std::size_t>(pair)]);
    }
  }

  AssociativeRecallConfig config_;
};

}  // namespace infty
