// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// Computes P(|T| <= t) of Student's t: the finite sums of Abramowitz and Stegun, 26.7.3 and
/// 26.7.4.
/// @param t  >= 0   @param degrees  of freedom, >= 1   @throws infty::ValueError else
inline double student_within(double t, Index degrees) {
  require(t >= 0, "student_within", "t is ", t, ": it must be at least 0");
  require_at_least("student_within", "degrees", degrees, 1);
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle);
  const bool odd = degrees % 2 != 0;
  double term = odd ? cosine : 1, sum = 0;
  for (Index power = odd ? 1 : 0; power + 2 <= degrees; power += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(power + 1) / static_cast<double>(power + 2);
  }
  const double shared = std::sin(angle) * sum;
  return odd ? 2 / std::numbers::pi * (angle + shared) : shared;
}

/// Computes the t that |T| of Student's t does not exceed with a probability: its quantile at
/// (1 + probability) / 2.
/// @param probability  in [0, 1)   @param degrees  of freedom, >= 1   @throws infty::ValueError
/// else
inline double student_bound(double probability, Index degrees) {
  require(probability >= 0 && probability < 1, "student_bound", "probability is ", probability,
          ": it must lie in [0, 1)");
  require_at_least("student_bound", "degrees", degrees, 1);
  const double scale = std::sqrt(static_cast<double>(degrees));
  // By bisection of the angle whose tangent is t / scale, which is bounded.
  double low = 0, high = std::numbers::pi / 2;
  for (double middle; (middle = (low + high) / 2) > low && middle < high;)
    (student_within(scale * std::tan(middle), degrees) < probability ? low : high) = middle;
  return scale * std::tan(low);
}

/// How much one thing's measurements exceed another's, of pairs that have all else in common, such
/// as the seed.
struct PairedDifference {
  Index pairs = 0;           ///< how many there are
  double mean = 0;           ///< of first - second
  double low = 0, high = 0;  ///< an interval for it, all numbers with fewer than three pairs

  /// Whether the interval leaves 0 out, so that the mean's sign is a verdict. Differences without
  /// any spread give none: an interval cannot be had from them.
  bool decided() const { return low < high && (low > 0 || high < 0); }
};

/// Computes the mean of the differences first[i] - second[i] and Student's interval for it, by
/// Bonferroni's correction so wide that the intervals of all `comparisons` together hold with the
/// probability 1 - error_rate, whatever their dependence: where nothing differs, one verdict or
/// more is among them with the probability error_rate at most. Exact for normal differences.
/// @param comparisons  >= 1, that were fixed before the measurements were seen
/// @param error_rate   in (0, 1), of which each comparison is left 1e-12 at least
/// @throws infty::ValueError for other numbers, spans of different sizes, or none;
/// infty::NonFiniteError for measurements that are not finite
inline PairedDifference paired_difference(std::span<const double> first,
                                          std::span<const double> second, Index comparisons = 1,
                                          double error_rate = .05) {
  require(first.size() == second.size() && !first.empty(), "paired_difference", "there are ",
          first.size(), " and ", second.size(), " measurements: they must be pairs, one at least");
  require_at_least("paired_difference", "comparisons", comparisons, 1);
  require(error_rate > 0 && error_rate < 1, "paired_difference", "error_rate is ", error_rate,
          ": it must lie in (0, 1)");
  const double left = error_rate / static_cast<double>(comparisons);
  require(left >= 1e-12, "paired_difference", "error_rate is ", error_rate, ": it leaves each of ",
          comparisons, " comparisons ", left, ", which must be at least 1e-12");
  const auto count = static_cast<double>(first.size());
  std::vector<double> differences;
  PairedDifference result{.pairs = static_cast<Index>(first.size())};
  for (std::size_t i = 0; i < first.size(); ++i) {
    differences.push_back(first[i] - second[i]);
    require<NonFiniteError>(math::is_finite(differences.back()), "paired_difference", "pair ", i,
                            " is ", first[i], " and ", second[i]);
    // From the first on, so that equal differences are exactly their mean.
    result.mean += differences.back() / count - differences.front() / count;
  }
  result.mean += differences.front();
  double half = math::infinity<double>;
  if (result.pairs >= 3) {
    double squares = 0;
    for (const double difference : differences)
      squares += (difference - result.mean) * (difference - result.mean);
    half = student_bound(1 - left, result.pairs - 1) * std::sqrt(squares / (count - 1) / count);
  }
  result.low = result.mean - half;
  result.high = result.mean + half;
  return result;
}

}  // namespace infty
