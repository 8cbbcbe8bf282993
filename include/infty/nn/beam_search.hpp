// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/core/select_rows.hpp>
#include <infty/core/tensor.hpp>
#include <infty/nn/sampling.hpp>

namespace infty {

/// What the logarithm of a hypothesis' probability is divided by, n tokens long, its end included.
enum class LengthPenalty {
  gnmt,  ///< ((5 + n) / 6)^alpha [Wu et al. 2016, Eq. 14], as in tensor2tensor
  power  ///< n^alpha, as in fairseq and transformers; 1 is the mean over tokens
};

/// The constants of `beam_search`. Beam and penalty are those of [Vaswani et al. 2017, §6.1].
struct BeamSearchConfig {
  Index beam = 4;     ///< hypotheses that are held a source; 1 takes the likeliest token
  double alpha = .6;  ///< of the length penalty; 0: none, above it prefers longer ones
  LengthPenalty penalty = LengthPenalty::gnmt;  ///< its form
  Index end = 0;                                ///< the token that ends a hypothesis
  Index longest = 100;                          ///< tokens of a hypothesis, its end included
  Index best = 1;  ///< hypotheses that are wanted a source, at most `beam`

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("BeamSearchConfig", "beam", beam, 1);
    require(math::is_finite(alpha) && alpha >= 0, "BeamSearchConfig", "alpha is ", alpha,
            ": it must be finite, >= 0");
    require_at_least("BeamSearchConfig", "end", end, 0);
    require_at_least("BeamSearchConfig", "longest", longest, 1);
    require(best >= 1 && best <= beam, "BeamSearchConfig", "best is ", best,
            ": it must lie in [1, beam = ", beam, "]");
    require_sizes("BeamSearchConfig", {{"beam", beam}, {"longest", longest}});
  }

  /// The score of a hypothesis of n tokens, its end included, with this logarithm of a probability.
  double score(double log_probability, Index n) const {
    const double length = static_cast<double>(n);
    const double base = penalty == LengthPenalty::gnmt ? (5 + length) / 6 : length;
    return log_probability / std::pow(base, alpha);
  }
};

/// A sequence that a `beam_search` has found.
struct Hypothesis {
  std::vector<Index> tokens;   ///< without the end token
  double log_probability = 0;  ///< the sum over its tokens, that of the end included
  double score = 0;            ///< the same behind the length penalty
  bool ended = false;          ///< whether it came to its end, and not to the greatest length

  /// Whether two are the same.
  bool operator==(const Hypothesis&) const = default;
};

namespace detail {

/// What may become of the hypothesis in a row.
struct BeamCandidate {
  double log_probability;
  Index parent;  ///< a row of the search
  Index token;

  /// The likelier one comes first; of equals that of the better parent, and then the lower token.
  bool operator<(const BeamCandidate& other) const {
    if (log_probability != other.log_probability) return log_probability > other.log_probability;
    return parent != other.parent ? parent < other.parent : token < other.token;
  }
};

/// The search for one source: what it holds and what it has found.
class Beam {
 public:
  explicit Beam(const BeamSearchConfig& config) : config_(&config), alive_(1) {}

  /// Rows that it holds, the likeliest first.
  const std::vector<Hypothesis>& alive() const { return alive_; }

  /// Takes a step by the logarithms of probabilities [alive, classes] of rows from `first` on. The
  /// rows that are then alive come of the rows that are added to `parents`.
  void step(std::span<const double> scores, Index first, RowCounts& parents) {
    const auto classes = static_cast<Index>(scores.size() / alive_.size());
    // Of as many ends as there are parents, and so at most `beam`, none takes the place of a
    // hypothesis that goes on.
    const Index beam = config_->beam, most = 2 * beam;
    std::vector<BeamCandidate> candidates;   // a heap of the best, of which the last is in front
    double least = -math::infinity<double>;  // of one that may be among them
    for (Index row = 0; row < std::ssize(alive_); ++row)
      for (Index token = 0; token < classes; ++token) {
        const double p = scores[static_cast<std::size_t>(row * classes + token)];
        const BeamCandidate candidate{at(row).log_probability + p, row, token};
        if (!(p > -math::infinity<double>) || candidate.log_probability < least) continue;
        candidates.push_back(candidate);
        std::push_heap(candidates.begin(), candidates.end());
        if (std::ssize(candidates) <= most) continue;
        std::pop_heap(candidates.begin(), candidates.end());
        candidates.pop_back();
        least = candidates.front().log_probability;
      }
    std::sort_heap(candidates.begin(), candidates.end());
    const Index count = std::ssize(candidates);
    std::vector<Hypothesis> next;
    for (Index i = 0; i < count && std::ssize(next) < beam; ++i) {
      const BeamCandidate& c = candidates[static_cast<std::size_t>(i)];
      Hypothesis grown = at(c.parent);
      grown.log_probability = c.log_probability;
      if (c.token == config_->end) {
        if (i < beam) finish(std::move(grown), true);  // another one is not among the best
        continue;
      }
      grown.tokens.push_back(c.token);
      next.push_back(std::move(grown));
      parents.push_back(first + c.parent);
    }
    alive_ = std::move(next);
    const bool over = std::ssize(finished_) >= beam;
    const bool longest = !alive_.empty() && std::ssize(alive_[0].tokens) >= config_->longest;
    if (longest)
      for (Hypothesis& hypothesis : alive_) finish(std::move(hypothesis), false);
    if (over || longest) {
      parents.resize(parents.size() - alive_.size());
      alive_.clear();
    }
  }

  /// The best that were found, the best first; of equals the one that was found first.
  std::vector<Hypothesis> best() && {
    std::stable_sort(finished_.begin(), finished_.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
    if (std::ssize(finished_) > config_->best)
      finished_.resize(static_cast<std::size_t>(config_->best));
    return std::move(finished_);
  }

 private:
  const Hypothesis& at(Index row) const { return alive_[static_cast<std::size_t>(row)]; }

  void finish(Hypothesis hypothesis, bool ended) {
    const Index n = std::ssize(hypothesis.tokens) + (ended ? 1 : 0);
    hypothesis.score = config_->score(hypothesis.log_probability, n);
    hypothesis.ended = ended;
    finished_.push_back(std::move(hypothesis));
  }

  const BeamSearchConfig* config_;
  std::vector<Hypothesis> alive_, finished_;
};

/// The logarithms of probabilities [rows, classes] on the host, none of which is NaN or above
/// -infinity and yet not finite.
template <class T, class B>
std::vector<double> checked_scores(const Tensor<T, B>& scores, Index rows) {
  require<ShapeError>(scores.rank() == 2 && scores.dim(0) == rows && scores.dim(1) >= 1,
                      "beam_search", "the scores are ", scores.shape(), ": they must be [", rows,
                      ", classes]");
  const std::vector<T> values = scores.to_vector();
  std::vector<double> all(values.begin(), values.end());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!math::is_finite(all[i]) && !(all[i] < 0))
      raise<NonFiniteError>("beam_search", "row ", static_cast<Index>(i) / scores.dim(1),
                            ", token ", static_cast<Index>(i) % scores.dim(1), ": the score is ",
                            all[i], ": it must be finite or -infinity");
  return all;
}

}  // namespace detail

/// The logarithms of softmax(scores), [..., classes] -> [..., classes], with -infinity where a
/// score is -infinity. Without a gradient: what `beam_search` goes by.
/// @throws infty::ShapeError for scores without a class
template <class T, class B>
Tensor<T, B> log_probabilities(const Tensor<T, B>& scores) {
  const Index rows = detail::rows_of_scores("log_probabilities", scores.shape()).size(),
              classes = scores.dim(-1);
  Tensor<T, B> out(scores.shape());
  const T* const from = scores.data();
  T* const to = out.data();
  B::for_each_row(rows, 4 * classes, [=] INFTY_HOST_DEVICE(Index row) {
    const T* const x = from + row * classes;
    const T top = detail::row_max<T>(classes, [=](Index j) { return x[j]; });
    const T sum = detail::row_sum<T>(classes, [=](Index j) { return math::exp(x[j] - top); });
    const T log_sum = std::log(sum);
    const bool none = top == -math::infinity<T>;  // of no token; its differences would be NaN
    for (Index j = 0; j < classes; ++j) to[row * classes + j] = none ? top : x[j] - top - log_sum;
  });
  return out;
}

/// Looks for the likeliest sequences behind every row of a state, holding the `beam` likeliest
/// beginnings of each and going on with their likeliest tokens. An end counts where it is among the
/// `beam` likeliest ways to go on; a row is done when `beam` sequences have ended, or at the
/// greatest length, where those that are held are taken as they are, or when no token has a
/// probability. So one beam is `argmax` token by token, but where rounding makes two logarithms
/// equal, and a beam as large as the number of all beginnings that go on finds the best sequence
/// that there is. Of equals the one of the better beginning, then of the lower token, comes first.
/// Rows do not depend on each other but for the rounding of `next`.
/// @param state  what has been read until now; it stays as it is
/// @param first  the token that every row begins with, one a row
/// @param next   next(State&, const std::vector<Index>& tokens) reads a token a row, moves the
/// state on, and returns the logarithms of the probabilities of all next tokens, Tensor [rows,
/// classes]; -infinity for what cannot come
/// @return       the `best` sequences of every row, the best first; fewer where there are no more
/// @throws infty::ValueError for a bad configuration or an end that is no class; infty::ShapeError
/// unless there is a first token a row; infty::NonFiniteError that names the row and the token of a
/// score that is NaN or +infinity; and what `next` throws
template <Visitable State, class Next>
std::vector<std::vector<Hypothesis>> beam_search(const State& state,
                                                 const std::vector<Index>& first, Next&& next,
                                                 const BeamSearchConfig& config) {
  config.validate();
  const Index batch = std::ssize(first);
  const Index held = batch_of(state);  // 0: nothing is remembered
  require<ShapeError>(held == batch || held == 0, "beam_search", "there are ", batch,
                      " first tokens, the state has ", held, " rows");
  std::vector<detail::Beam> beams(first.size(), detail::Beam(config));
  State now = state;
  std::vector<Index> tokens = first;
  while (!tokens.empty()) {
    const auto rows = std::ssize(tokens);
    const auto tensor = next(now, std::as_const(tokens));
    const std::vector<double> scores = detail::checked_scores(tensor, rows);
    const Index classes = tensor.dim(1);
    require(config.end < classes, "beam_search", "end is ", config.end, ": it must be one of ",
            classes, " tokens");
    RowCounts parents;
    Index at = 0;
    tokens.clear();
    for (detail::Beam& beam : beams) {
      const Index count = std::ssize(beam.alive());
      if (count == 0) continue;
      const auto begin = static_cast<std::size_t>(at * classes);
      beam.step(std::span(scores).subspan(begin, static_cast<std::size_t>(count * classes)), at,
                parents);
      for (const Hypothesis& hypothesis : beam.alive()) tokens.push_back(hypothesis.tokens.back());
      at += count;
    }
    if (held == 0 || tokens.empty()) continue;
    bool same = std::ssize(parents) == rows;
    for (Index i = 0; same && i < rows; ++i) same = parents[static_cast<std::size_t>(i)] == i;
    if (!same) now = select_rows(now, parents);
  }
  std::vector<std::vector<Hypothesis>> found;
  for (detail::Beam& beam : beams) found.push_back(std::move(beam).best());
  return found;
}

}  // namespace infty
