// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cmath>
#include <string_view>

#include <infty/core/checked.hpp>
#include <infty/core/number.hpp>
#include <infty/io/settings.hpp>

namespace infty {

namespace detail {

/// Examples of a stream, at most: a `double` still tells them apart.
inline constexpr Index most_counted = Index{1} << 53;

/// ⌊rate n⌋ for a rate in [0, 1], and not one less where a decimal rate is rounded down. Of n + 1
/// it is at most one more: the product is rounded once.
inline Index share_of(double rate, Index n) {
  const double lifted = rate * (1 + 1e-12), share = lifted * static_cast<double>(n);
  return share < static_cast<double>(n) ? static_cast<Index>(share) : n;
}

}  // namespace detail

/// Which of the examples of a stream an `EpisodicMemory` writes.
enum class WriteRule {
  probability,  ///< each by itself, with probability `rate` (MbPA++)
  diversity,    ///< those that are far from what is held, the criterion of Meta-MbPA
  score         ///< those with the highest scores: how unsure of them a model is, or how often it
                ///< has forgotten them (`ForgettingEvents`)
};

/// The names of rules in files, options and messages.
constexpr std::array<std::string_view, 3> names_of(WriteRule) {
  return {"probability", "diversity", "score"};
}

/// What a full `EpisodicMemory` does with another example.
enum class Replacement {
  reservoir,  ///< it is held with probability capacity / chosen so far, in the place of any: what
              ///< is held is an even sample of all that were chosen [Vitter 1985, Algorithm R]
  oldest,     ///< it takes the place of the one that was written first
  nothing     ///< it is not written
};

/// The names of replacements in files, options and messages.
constexpr std::array<std::string_view, 3> names_of(Replacement) {
  return {"reservoir", "oldest", "nothing"};
}

/// Constants of an `EpisodicMemory`.
struct EpisodicConfig {
  Index capacity = 100'000;                          ///< examples that are held at most
  Replacement replacement = Replacement::reservoir;  ///< what goes when there are more
  WriteRule rule = WriteRule::probability;           ///< which examples are written
  /// Share of the stream that is written, in [0, 1] [de Masson d'Autume et al. 2019: 1; Wang et al.
  /// 2020: 0.01].
  double rate = 1;
  /// β of `diversity`, not 0: an example is chosen with log p ∝ d / β, d its smallest squared
  /// distance to a key that is held. The paper prints a minus there [Wang et al. 2020], which would
  /// choose what is known already and is against its words; a negative β computes that.
  double beta = 10;
  Index seed = 0;  ///< of what is drawn by writing

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    require_at_least("EpisodicConfig", "capacity", capacity, 1);
    require(capacity < (Index{1} << 31), "EpisodicConfig", "capacity is ", capacity,
            ": it must be less than 2^31");
    require(math::is_finite(rate) && rate >= 0 && rate <= 1, "EpisodicConfig", "rate is ", rate,
            ": it must lie in [0, 1]");
    require(math::is_finite(beta) && beta != 0, "EpisodicConfig", "beta is ", beta,
            ": it must be finite and not 0");
    require_at_least("EpisodicConfig", "seed", seed, 0);
  }
};

/// Names every setting of an `EpisodicConfig`.
template <class See>
void describe(EpisodicConfig& c, See&& see) {
  see("capacity", c.capacity, "examples that are held at most");
  see("replacement", c.replacement, "what goes when there are more");
  see("rule", c.rule, "which examples are written");
  see("rate", c.rate, "share of the stream that is written");
  see("beta", c.beta,
      "squared distance that makes an example e times as likely, of the rule diversity");
  see("seed", c.seed, "of what is drawn by writing");
}

}  // namespace infty
