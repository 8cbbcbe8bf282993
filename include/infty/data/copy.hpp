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

/// The copy task's sizes.
struct CopyConfig {
  Index symbols = 8;  ///< different ones, at least 1
  Index items = 10;   ///< symbols to be copied, at least 1
  Index gap = 100;    ///< blanks behind them, at least 0
};

/// Sequences and their answers, row by row.
struct CopyBatch {
  std::vector<std::int64_t> tokens;  ///< (batch, items + gap)
  std::vector<std::int64_t> answer;  ///< (batch, items), the symbols at the beginning of each row
};

/// The copy task [Hochreiter & Schmidhuber 1997; Arjovsky et al. 2016]: symbols, drawn evenly and
/// independently, are followed by blanks, and have to be said in their order behind these. Whoever
/// remembers nothing says one of `symbols` right.
class CopyTask {
 public:
  /// Makes a task of these sizes.
  /// @throws infty::ValueError for sizes out of their range
  explicit CopyTask(const CopyConfig& config) : config_(config) {
    require(config.symbols >= 1 && config.items >= 1 && config.gap >= 0, "CopyTask", "symbols is ",
            config.symbols, ", items ", config.items, ", gap ", config.gap,
            ": they must be at least 1, 1 and 0");
    require_sizes("CopyTask", {{"symbols", config.symbols}});
    require_sizes("CopyTask", {{"items", config.items}});
    require_sizes("CopyTask", {{"gap", config.gap}});
  }

  /// The constants as given.
  const CopyConfig& config() const { return config_; }

  /// Tokens in a sequence.
  Index length() const { return config_.items + config_.gap; }
  /// The token of the gap, one above the symbols.
  std::int64_t blank() const { return config_.symbols; }
  /// The token that stands between a sequence and its answer.
  std::int64_t separator() const { return config_.symbols + 1; }
  /// Number of different tokens.
  Index vocabulary() const { return config_.symbols + 2; }

  /// Draws `batch` sequences and takes `batch` draws from `random`: row b depends on draw b alone.
  /// @throws infty::ValueError if batch < 0 or there would be more than `largest_size` tokens
  CopyBatch sample(Index batch, Random& random) const {
    require_at_least("CopyTask::sample", "batch", batch, 0);
    require_sizes("CopyTask::sample", {{"batch", batch}, {"items + gap", length()}});
    CopyBatch out;
    out.tokens.reserve(static_cast<std::size_t>(batch * length()));
    for (Index row = 0; row < batch; ++row) {
      Random draws = detail::random_of_row(random);
      for (Index i = 0; i < config_.items; ++i) out.answer.push_back(draws.below(config_.symbols));
      out.tokens.insert(out.tokens.end(), out.answer.end() - config_.items, out.answer.end());
      out.tokens.insert(out.tokens.end(), static_cast<std::size_t>(config_.gap), blank());
    }
    return out;
  }

 private:
  CopyConfig config_;
};

}  // namespace infty
