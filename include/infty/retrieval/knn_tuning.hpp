// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/number.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/retrieval/retrieved.hpp>

namespace infty {

/// Finds kNN-LM's λ, k and temperature on a text, by one pass over it: of every place it keeps what
/// the neighbours say of the target at each k and temperature, and the model's own probability; λ
/// is then the exact optimum of each, for the likelihood is concave in it.
class KnnTuning {
 public:
  /// Constants that were tried, or found best.
  struct Choice {
    Index k = 0;             ///< neighbours
    double temperature = 1;  ///< that similarities are divided by
    double lambda = 0;       ///< share of the neighbours' distribution
    double nats = 0;         ///< mean -log p of a target with these
  };

  /// @throws infty::ValueError unless there are some of both, each k >= 1 and each temperature in
  /// [`least_divisor`, `largest_constant`]
  KnnTuning(std::vector<Index> ks, std::vector<double> temperatures)
      : ks_(std::move(ks)), temperatures_(std::move(temperatures)) {
    require(!ks_.empty() && !temperatures_.empty(), "KnnTuning",
            "there is no k or no temperature to try");
    std::sort(ks_.begin(), ks_.end());
    require_at_least("KnnTuning", "k", ks_.front(), 1);
    for (const double t : temperatures_)
      require_within("KnnTuning", "temperature", t, least_divisor, largest_constant);
  }

  /// The most neighbours that any choice takes.
  Index most() const {
    require(!ks_.empty(), "KnnTuning", "it was moved from");
    return ks_.back();
  }
  /// Places until now.
  Index places() const { return static_cast<Index>(own_.size()); }

  /// Takes in what was looked up, with scores at temperature 1, the nearest first, for places of
  /// which the model loses so much, in nats. Targets below 0 are left out.
  /// @throws infty::ShapeError unless there are as many of all, with `most()` neighbours each;
  /// infty::NonFiniteError for a loss or a score of what was found that is NaN, infty::ValueError
  /// for a loss below 0 by more than rounding: it is -log of a probability. Then nothing is taken
  /// in
  template <class T, class B>
  void add(const Retrieved<T, B>& found, std::span<const T> losses,
           const std::vector<Index>& targets) {
    const Index rows = std::ssize(targets);
    detail::require_retrieved("KnnTuning", found);
    require<ShapeError>(found.scores.shape() == Shape{rows, most()} && std::ssize(losses) == rows,
                        "KnnTuning", "scores are ", found.scores.shape(), " and losses ",
                        losses.size(), " for ", rows, " targets: they must be [", rows, ", ",
                        most(), "] and ", rows);
    const std::vector<T> scores = found.scores.to_vector();
    const std::vector<Index> tokens = found.tokens.to_vector();
    const auto neighbours = static_cast<std::size_t>(most());
    std::vector<Index> kept;
    for (Index i = 0; i < rows; ++i) {
      const auto place = static_cast<std::size_t>(i);
      if (targets[place] < 0) continue;
      require<NonFiniteError>(!math::is_nan(losses[place]), "KnnTuning", "loss ", i, " is NaN");
      require(losses[place] > T(-1e-3), "KnnTuning", "loss ", i, " is ", losses[place],
              ": it must be -log of a probability");
      for (std::size_t j = place * neighbours; j < (place + 1) * neighbours; ++j)
        require<NonFiniteError>(tokens[j] < 0 || !math::is_nan(scores[j]), "KnnTuning",
                                "a score of place ", i, " is NaN");
      kept.push_back(i);
    }
    const std::size_t begin = own_.size(), choices = ks_.size() * temperatures_.size();
    said_.resize((begin + kept.size()) * choices);
    own_.resize(begin + kept.size());  // last, for it counts the places
    EigenBackend::for_each_row(
        std::ssize(kept), most() * std::ssize(temperatures_) * 8, [&](Index n) {
          const auto i = static_cast<std::size_t>(kept[static_cast<std::size_t>(n)]);
          const auto at = begin + static_cast<std::size_t>(n);
          own_[at] = static_cast<float>(losses[i]);
          const std::size_t first = i * static_cast<std::size_t>(most());
          for (std::size_t t = 0; t < temperatures_.size(); ++t)
            say(scores.data() + first, tokens.data() + first, targets[i], temperatures_[t],
                said_.data() + (at * temperatures_.size() + t) * ks_.size());
        });
  }

  /// Mean -log p of a target with a share of λ for the neighbours; the model's own at λ = 0, and
  /// where none was found. @throws infty::ValueError without places, or for a choice that was not
  /// tried
  double nats(Index k, double temperature, double lambda) const {
    const std::size_t choice = choice_of(k, temperature);
    return summed(choice,
                  [&](double own, double said) {
                    const double with = lambda * said + (1 - lambda) * own;
                    return said < 0 ? -std::log(own) : -std::log(with);
                  }) /
           static_cast<double>(places());
  }

  /// The best λ in [0, 0.999] of every k and temperature, and what it gives.
  /// @throws infty::ValueError without places
  std::vector<Choice> tried() const {
    require(!ks_.empty(), "KnnTuning", "it was moved from");
    std::vector<Choice> all;
    for (const double t : temperatures_)
      for (const Index k : ks_) {
        // The derivative of the likelihood falls: where it is 0 the optimum is.
        const std::size_t choice = choice_of(k, t);
        double low = 0, high = .999;
        for (int i = 0; i < 30; ++i) {
          const double middle = (low + high) / 2;
          const double slope = summed(choice, [&](double own, double said) {
            return said < 0 ? 0 : (said - own) / (middle * said + (1 - middle) * own);
          });
          (slope > 0 ? low : high) = middle;
        }
        const double lambda = low > 0 ? low : 0;
        all.push_back({k, t, lambda, nats(k, t, lambda)});
      }
    return all;
  }

  /// The best of `tried()`, the first of equals. @throws infty::ValueError without places
  Choice best() const {
    const auto all = tried();
    return *std::min_element(all.begin(), all.end(),
                             [](const Choice& a, const Choice& b) { return a.nats < b.nats; });
  }

 private:
  /// What the first k neighbours say of the target, for every k; -1 where there is none.
  template <class T>
  void say(const T* scores, const Index* tokens, Index target, double temperature,
           float* to) const {
    // Scores need not fall: sums are relative to the largest so far.
    double top = -std::numeric_limits<double>::infinity(), all = 0, good = 0;
    Index j = 0;
    for (std::size_t i = 0; i < ks_.size(); ++i) {
      for (; j < ks_[i]; ++j) {
        const auto score = static_cast<double>(scores[j]);
        // A distance beyond all numbers has no weight, as where it is predicted from.
        if (tokens[j] < 0 || score == -std::numeric_limits<double>::infinity()) continue;
        if (score > top) {
          const double less = all > 0 ? std::exp((top - score) / temperature) : 0;
          all *= less;
          good *= less;
          top = score;
        }
        const double weight = std::exp((score - top) / temperature);
        all += weight;
        if (tokens[j] == target) good += weight;
      }
      to[i] = all > 0 ? static_cast<float>(good / all) : -1.0F;
    }
  }

  std::size_t choice_of(Index k, double temperature) const {
    const auto i = std::find(ks_.begin(), ks_.end(), k);
    const auto t = std::find(temperatures_.begin(), temperatures_.end(), temperature);
    require(i != ks_.end() && t != temperatures_.end(), "KnnTuning", "k = ", k, " at temperature ",
            temperature, " was not tried");
    require(!own_.empty(), "KnnTuning", "there is no place to tune on");
    return static_cast<std::size_t>(t - temperatures_.begin()) * ks_.size() +
           static_cast<std::size_t>(i - ks_.begin());
  }

  /// The sum of f(own probability, what the neighbours say) over all places.
  template <class F>
  double summed(std::size_t choice, F&& f) const {
    const std::size_t choices = ks_.size() * temperatures_.size();
    return EigenBackend::reduce(places(), 0.0, detail::Plus{}, [&](Index i) {
      const auto at = static_cast<std::size_t>(i);
      const double own = (std::max)(std::exp(-static_cast<double>(own_[at])),
                                    (std::numeric_limits<double>::min)());
      return static_cast<double>(f(own, static_cast<double>(said_[at * choices + choice])));
    });
  }

  std::vector<Index> ks_;
  std::vector<double> temperatures_;
  std::vector<float> own_;   ///< the model's loss of every place
  std::vector<float> said_;  ///< [places, temperatures, ks], the neighbours' p of the target, or -1
};

}  // namespace infty
