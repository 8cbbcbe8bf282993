// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/io/settings.hpp>
#include <infty/lifelong/sequential.hpp>

namespace infty {

/// How seldom examples of the memory are replayed. The papers draw 100 of every 10,000 [de Masson
/// d'Autume et al. 2019] or 96 of 9,600 [Holla et al. 2020], one in a hundred.
struct SparseReplayConfig {
  Index interval = 10'000;  ///< R_I in [1, 2^53], examples of the stream between two draws
  double rate = .01;        ///< r in [0, 1]: ⌊r R_I⌋ are drawn

  /// How many are drawn at a time.
  Index drawn() const { return detail::share_of(rate, interval); }

  /// How many times to draw while the stream goes from `before` to `after` examples.
  Index times(Index before, Index after) const {
    return drawn() > 0 ? after / interval - before / interval : 0;
  }

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    require_at_least("SparseReplayConfig", "interval", interval, 1);
    require(interval <= detail::most_counted, "SparseReplayConfig", "interval is ", interval,
            ": it must be at most 2^53");
    require(rate >= 0 && rate <= 1, "SparseReplayConfig", "rate is ", rate,
            ": it must lie in [0, 1]");
  }
};

/// Names every setting of a `SparseReplayConfig`.
template <class See>
void describe(SparseReplayConfig& c, See&& see) {
  see("interval", c.interval, "examples of the stream between two draws from the memory");
  see("rate", c.rate, "share of so many that is drawn");
}

/// Writes what it learns, and now and then takes a step on random examples of the memory: REPLAY of
/// the papers. With a rate of 0 it writes alone.
class ExperienceReplay : public Sequential {
 public:
  /// @throws infty::ValueError for a bad configuration
  explicit ExperienceReplay(SparseReplayConfig config)
      : config_((config.validate(), std::move(config))) {}

  /// A step on a batch, which is then offered to the memory, and the steps of replay that are due.
  /// @throws as `Learner::train_on` and `Learner::write`
  template <class L>
  void learn(L& learner, std::span<const Example> batch) {
    learner.train_on(batch);
    const Index before = learner.memory.offered();
    learner.write(batch);
    for (Index i = config_.times(before, learner.memory.offered()); i > 0; --i)
      if (learner.memory.size() > 0)
        learner.train_on(
            learner.memory.examples(learner.memory.draw(config_.drawn(), learner.random)));
  }

 private:
  SparseReplayConfig config_;
};

}  // namespace infty
