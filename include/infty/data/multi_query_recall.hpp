// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/math.hpp>
#include <infty/core/random.hpp>
#include <infty/data/draws.hpp>

namespace infty {

/// The constants of multi-query associative recall; the defaults are those of Zoology's smallest
/// setting [Arora et al. 2024, Fig. 2].
struct MultiQueryRecallConfig {
  Index vocabulary = 8192;          ///< V: 0 fills, keys are below V / 2, values from there on
  Index length = 64;                ///< n, tokens of a sequence, at least 4 pairs
  Index pairs = 4;                  ///< P, pairs of a key and a value, at least 1
  double power = .01;               ///< a: slot j is asked with probability ~ (j + 1)^(a - 1),
                                    ///< which must lie in [1e-280, 1e280] for all j
  bool random_non_queries = false;  ///< what is no pair and no question: any token, or else 0

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("MultiQueryRecallConfig", "pairs", pairs, 1);
    require_sizes("MultiQueryRecallConfig", {{"length", length}});
    require_sizes("MultiQueryRecallConfig", {{"vocabulary", vocabulary}});
    require(pairs <= length / 4, "MultiQueryRecallConfig", "length is ", length,
            ": it must be at least 4 pairs, ", pairs, " of them");
    require(vocabulary % 2 == 0 && vocabulary / 2 > pairs, "MultiQueryRecallConfig",
            "vocabulary is ", vocabulary,
            ": it must be even, and its half larger than pairs = ", pairs);
    require(math::is_finite(power), "MultiQueryRecallConfig", "power is ", power,
            ": it must be finite");
    const double last = std::log10(static_cast<double>(length / 2 - pairs)) * (power - 1);
    require(last >= -280 && last <= 280, "MultiQueryRecallConfig", "power is ", power,
            ": the last slot weighs 10^", last, ", which must lie in [1e-280, 1e280]");
  }
};

/// Sequences and what is to be said at each of their places, row by row.
struct MultiQueryRecallBatch {
  std::vector<std::int64_t> inputs;  ///< (batch, length)
  std::vector<std::int64_t> labels;  ///< (batch, length); `ignored` where nothing is asked
};

/// Multi-query associative recall, MQAR, by the rules of its authors' program [Arora et al. 2024]:
/// P keys, each with its value behind it; then, at even places, each key once more, where its value
/// is to be said. Keys differ, and so do values.
class MultiQueryRecallTask {
 public:
  static constexpr std::int64_t ignored = -100;  ///< the label of places that ask nothing

  /// Makes a task of these constants.
  /// @throws infty::ValueError for constants out of their range
  explicit MultiQueryRecallTask(const MultiQueryRecallConfig& config) : config_(config) {
    config.validate();
    const Index slots = (config.length - 2 * config.pairs) / 2;
    for (Index j = 0; j < slots; ++j)
      weights_.push_back(std::pow(static_cast<double>(j + 1), config.power - 1));
  }

  /// The constants as given.
  const MultiQueryRecallConfig& config() const { return config_; }

  /// Draws `batch` sequences and takes `batch` draws from `random`: row b depends on draw b alone.
  /// @throws infty::ValueError if batch < 0 or there would be more than `largest_size` tokens
  MultiQueryRecallBatch sample(Index batch, Random& random) const {
    require_at_least("MultiQueryRecallTask::sample", "batch", batch, 0);
    require_sizes("MultiQueryRecallTask::sample", {{"batch", batch}, {"length", config_.length}});
    MultiQueryRecallBatch out;
    for (Index row = 0; row < batch; ++row) {
      Random draws = detail::random_of_row(random);
      sample_row(draws, out);
    }
    return out;
  }

 private:
  void sample_row(Random& random, MultiQueryRecallBatch& out) const {
    const auto [vocabulary, length, pairs, power, random_non_queries] = config_;
    const auto keys = detail::choose(pairs, vocabulary / 2 - 1, random),
               values = detail::choose(pairs, vocabulary / 2, random);
    const auto size = static_cast<std::size_t>(length);
    std::vector<std::int64_t> inputs(size), labels(size, ignored);
    if (random_non_queries)
      for (std::int64_t& token : inputs) token = random.below(vocabulary);
    std::vector<double> weights = weights_;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::int64_t key = 1 + keys[i], value = vocabulary / 2 + values[i];
      inputs[2 * i] = key;
      inputs[2 * i + 1] = value;
      const auto slot = static_cast<std::size_t>(random.categorical(weights));
      weights[slot] = 0;
      const std::size_t place = 2 * keys.size() + 2 * slot;
      inputs[place] = key;
      labels[place] = value;
    }
    out.inputs.insert(out.inputs.end(), inputs.begin(), inputs.end());
    out.labels.insert(out.labels.end(), labels.begin(), labels.end());
  }

  MultiQueryRecallConfig config_;
  std::vector<double> weights_;  // of slots
};

}  // namespace infty
