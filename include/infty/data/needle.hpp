// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/random.hpp>
#include <infty/data/draws.hpp>

namespace infty {

/// The sizes of a needle task.
struct NeedleConfig {
  Index keys = 8;     ///< different ones, more than `decoys`
  Index values = 8;   ///< different ones, at least 1
  Index fillers = 8;  ///< different tokens of the filler, at least 1
  Index decoys = 3;   ///< facts beside the one that is asked for, at least 0

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("NeedleConfig", "values", values, 1);
    require_at_least("NeedleConfig", "fillers", fillers, 1);
    require_at_least("NeedleConfig", "decoys", decoys, 0);
    require(keys > decoys, "NeedleConfig", "keys is ", keys,
            ": it must be more than decoys = ", decoys);
    require_sizes("NeedleConfig", {{"keys", keys}});
    require_sizes("NeedleConfig", {{"values", values}});
    require_sizes("NeedleConfig", {{"fillers", fillers}});
  }
};

/// Facts, and questions behind a filler as long as one likes, row by row.
struct NeedleBatch {
  std::vector<std::int64_t> facts;      ///< (batch, 2 (decoys + 1)), a key and its value each
  std::vector<std::int64_t> questions;  ///< (batch), the key of one of them
  std::vector<std::int64_t> answers;    ///< (batch), its value
  std::vector<Random> noise;            ///< (batch), what each row's filler is drawn from

  /// Rows.
  Index batch() const { return static_cast<Index>(questions.size()); }
};

/// A needle in a haystack: facts, a key and its value each, at the beginning of a text; then any
/// number of tokens that tell nothing; then one of the keys, for its value. Keys of a text differ;
/// values are drawn evenly and independently. Whoever remembers nothing says one of `values` right.
///
/// The filler is never held: token p of a row is a function of the row and of p, drawn evenly of
/// `fillers`. So a text of ten million tokens is read in pieces, and its beginning is that of a
/// shorter one.
class NeedleTask {
 public:
  /// Makes a task of these sizes.
  /// @throws infty::ValueError for sizes out of their range
  explicit NeedleTask(const NeedleConfig& config) : config_((config.validate(), config)) {}

  /// The constants as given.
  const NeedleConfig& config() const { return config_; }

  /// Tokens of the facts, in front of the filler.
  Index length() const { return 2 * (config_.decoys + 1); }
  /// The first key; values are the tokens below.
  std::int64_t first_key() const { return config_.values; }
  /// The first token of the filler, above the keys.
  std::int64_t first_filler() const { return config_.values + config_.keys; }
  /// Number of different tokens.
  Index vocabulary() const { return config_.values + config_.keys + config_.fillers; }

  /// Draws `batch` texts and takes `batch` draws from `random`: row b depends on draw b alone.
  /// @throws infty::ValueError if batch < 0 or there would be more than `largest_size` tokens
  NeedleBatch sample(Index batch, Random& random) const {
    require_at_least("NeedleTask::sample", "batch", batch, 0);
    require_sizes("NeedleTask::sample", {{"batch", batch}, {"2 (decoys + 1)", length()}});
    NeedleBatch out;
    for (Index row = 0; row < batch; ++row) {
      Random draws = detail::random_of_row(random);
      sample_row(draws, out);
    }
    return out;
  }

  /// Computes tokens [from, to) of every row's filler, 0 the one behind the facts: (batch, to -
  /// from), the same whatever the pieces.
  /// @throws infty::ValueError unless 0 <= from <= to and there would be at most `largest_size`
  std::vector<std::int64_t> filler(const NeedleBatch& batch, Index from, Index to) const {
    require(from >= 0 && from <= to, "NeedleTask::filler", "from is ", from, ", to is ", to,
            ": they must be at least 0 and rise");
    require_sizes("NeedleTask::filler", {{"batch", batch.batch()}, {"to - from", to - from}});
    std::vector<std::int64_t> out;
    out.reserve(static_cast<std::size_t>(batch.batch() * (to - from)));
    const auto fillers = static_cast<double>(config_.fillers);
    for (Random random : batch.noise) {
      random.seek(static_cast<std::uint64_t>(from));
      for (Index p = from; p < to; ++p) {
        // One draw a token, whatever it is; rounding may give `fillers` itself.
        const auto drawn = static_cast<Index>(random.uniform() * fillers);
        out.push_back(first_filler() + (std::min)(drawn, config_.fillers - 1));
      }
    }
    return out;
  }

 private:
  void sample_row(Random& random, NeedleBatch& out) const {
    const auto keys = detail::choose(config_.decoys + 1, config_.keys, random);
    std::vector<std::int64_t> values;
    for (const std::int64_t key : keys) {
      values.push_back(random.below(config_.values));
      out.facts.insert(out.facts.end(), {first_key() + key, values.back()});
    }
    const auto asked = static_cast<std::size_t>(random.below(config_.decoys + 1));
    out.questions.push_back(first_key() + keys[asked]);
    out.answers.push_back(values[asked]);
    out.noise.push_back(random.split(0));
  }

  NeedleConfig config_;
};

}  // namespace infty
