// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/random.hpp>
#include <infty/data/draws.hpp>
#include <infty/data/ranking.hpp>
#include <infty/eigen/parallel.hpp>

namespace infty {

/// The sorting task's sizes; the paper's are 20 symbols and lengths of 4,000, 8,000 and 16,000
/// [Martins et al. 2022, §4.1].
struct SortingConfig {
  Index symbols = 20;   ///< at least 2
  Index length = 4000;  ///< tokens in a sequence, at least 1
};

/// Sequences and their answers, row by row.
struct SortingBatch {
  std::vector<std::int64_t> tokens;  ///< (batch, length), each in [0, symbols)
  std::vector<std::int64_t> answer;  ///< (batch, symbols), each row a permutation
};

/// The sorting task [Martins et al. 2022, §4.1]: a sequence of symbols is followed by all symbols
/// in the order of their falling frequency in it. While the sequence goes on, the distribution of
/// its symbols moves from one to another, so that its end alone does not tell the answer.
///
/// As in the authors' generate_data.py: two weight vectors of integers drawn from 1 to 9,
/// normalised to p0 and p1; token t of L is drawn from (1 - r) p0 + r p1 with r = (t + 1) / L.
class SortingTask {
 public:
  /// Makes a task of these sizes.
  /// @throws infty::ValueError for less than 2 symbols or no token, or more than `largest_size`
  explicit SortingTask(const SortingConfig& config) : config_(config) {
    require_at_least("SortingTask", "symbols", config.symbols, 2);
    require_at_least("SortingTask", "length", config.length, 1);
    require_sizes("SortingTask", {{"symbols", config.symbols}});
    require_sizes("SortingTask", {{"length", config.length}});
  }

  /// The constants as given.
  const SortingConfig& config() const { return config_; }

  /// The token that stands between a sequence and its answer, one above the symbols.
  std::int64_t separator() const { return config_.symbols; }

  /// Number of different tokens: the symbols and the separator.
  Index vocabulary() const { return config_.symbols + 1; }

  /// Draws `batch` sequences and takes `batch` draws from `random`: row b depends on draw b alone,
  /// so the batches of sizes m and n, one after the other, are the batch of size m + n.
  /// @throws infty::ValueError if batch < 0 or there would be more than `largest_size` tokens
  SortingBatch sample(Index batch, Random& random) const {
    require_at_least("SortingTask::sample", "batch", batch, 0);
    require_sizes("SortingTask::sample", {{"batch", batch}, {"length", config_.length}});
    require_sizes("SortingTask::sample", {{"batch", batch}, {"symbols", config_.symbols}});
    const auto rows = static_cast<std::size_t>(batch), symbols = symbol_count();
    const auto length = static_cast<std::size_t>(config_.length);
    SortingBatch out;
    out.tokens.resize(rows * length);
    out.answer.resize(rows * symbols);
    std::vector<Random> of_rows;
    for (std::size_t b = 0; b < rows; ++b) of_rows.push_back(detail::random_of_row(random));
    // A row a task: while a step draws its sequences nothing else is to be done.
    parallel_tasks(batch, [&](Index row) {
      const auto b = static_cast<std::size_t>(row);
      const std::span<std::int64_t> tokens(out.tokens.data() + b * length, length);
      sample_row(tokens, of_rows[b]);
      const auto answer = rank_by_frequency(tokens, config_.symbols);
      std::copy(answer.begin(), answer.end(),
                out.answer.begin() + static_cast<std::ptrdiff_t>(b * symbols));
    });
    return out;
  }

 private:
  std::size_t symbol_count() const { return static_cast<std::size_t>(config_.symbols); }

  std::vector<double> draw_distribution(Random& random) const {
    std::vector<double> weights(symbol_count());
    double sum = 0;
    for (double& weight : weights) sum += weight = static_cast<double>(1 + random.below(9));
    for (double& weight : weights) weight /= sum;
    return weights;
  }

  void sample_row(std::span<std::int64_t> row, Random& random) const {
    const std::vector<double> first = draw_distribution(random), last = draw_distribution(random);
    for (std::size_t t = 0; t < row.size(); ++t) {
      // Choosing p1 with probability r and then a symbol from it is a draw from the mixture.
      const double r = static_cast<double>(t + 1) / static_cast<double>(row.size());
      row[t] = random.categorical(random.uniform() < r ? last : first);
    }
  }

  SortingConfig config_;
};

}  // namespace infty
