// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// How well dialogues were predicted, by token, and as the ∞-former's dialogue program weighs them:
/// each dialogue's mean counts as often as it has positions, those that nothing was predicted for,
/// too.
class DialogueScore {
 public:
  /// Adds a dialogue; one in which nothing was predicted adds nothing.
  /// @param nats       -log p of its predicted tokens, summed
  /// @param predicted  tokens that were predicted
  /// @param positions  places that have a token behind them
  /// @throws infty::ValueError unless 0 <= predicted <= positions and `nats` is finite
  void add(double nats, Index predicted, Index positions) {
    require_at_least("DialogueScore", "predicted", predicted, 0);
    require_at_least("DialogueScore", "positions", positions, predicted);
    require(math::is_finite(nats), "DialogueScore", "nats is ", nats, ": it must be finite");
    if (predicted == 0) return;
    nats_ += nats;
    predicted_ += static_cast<double>(predicted);
    weighed_ += nats / static_cast<double>(predicted) * static_cast<double>(positions);
    positions_ += static_cast<double>(positions);
  }

  /// exp of the mean -log p of a predicted token; NaN where none was predicted.
  double perplexity() const { return std::exp(nats_ / predicted_); }

  /// The figure that the program prints, and the paper's tables have.
  double weighed_perplexity() const { return std::exp(weighed_ / positions_); }

 private:
  double nats_ = 0, predicted_ = 0, weighed_ = 0, positions_ = 0;
};

}  // namespace infty
